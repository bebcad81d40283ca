// Compares what the clients were told with what is in the database, both ways: what was answered ok is there exactly once,
// and nothing is there that was not answered ok. Then what must hold whatever was sent: laws, pages, indexes, no deadlock.
import { openSession } from "../../src/database/connect.ts";
import type { Address } from "../../src/common/database-address.ts";
import type { Session } from "../../src/database/types.ts";
import { messageOf } from "../../src/common/program.ts";
import { finalOf, outcomeOf, suffixOf, verdictOf, type Entry, type History } from "./history.ts";
import { callerOf, tenants } from "./tenants.ts";

export type Findings = {
  // ok, and not there exactly once.
  lost: string[];
  // Not ok, and there.
  phantom: string[];
  // Two answers to one request_id that are not the same.
  contradictions: string[];
  invariants: string[];
  corruption: string[];
  deadlocks: number;
  checked: { ok: number; refused: number; turnedAway: number };
};
export type Parts = {
  address: Address;
  history: History;
  serverLog: string;
  received: Set<string>;
  feeds: Record<"A" | "B", string[]>;
};

type Effect = { table: string; key: string };
// Calls that are not of the stories: what the harness itself needed.
const isOurs = (requestId: string): boolean => requestId.startsWith("s-");

export async function check({ address, history, serverLog, received, feeds }: Parts): Promise<Findings> {
  const session = openSession(address, { name: "coupon chaos check" });
  try {
    await session.run("set work_mem = '256MB'; analyze");
    const found = await readEffects(session);
    const findings: Findings = {
      lost: [],
      phantom: [],
      contradictions: [],
      invariants: (
        await session.rows<{ found: string }>(
          "select format('%s (%s %s)', law, tenant, subject) as found from report.invariants limit 20",
        )
      ).map((row) => row.found),
      corruption: await findCorruption(session),
      deadlocks:
        Number(
          (await session.rows<{ count: string }>("select sum(deadlocks) as count from pg_stat_database"))[0]!.count,
        ) + (serverLog.match(/deadlock detected/g) ?? []).length,
      checked: { ok: 0, refused: 0, turnedAway: 0 },
    };
    const wanted = new Map<string, number>();
    for (const entry of history.entries.values()) {
      const outcome = outcomeOf(entry);
      findings.checked[outcome === "turned away" ? "turnedAway" : outcome === "unknown" ? "refused" : outcome] +=
        outcome === "unknown" ? 0 : 1;
      findings.contradictions.push(...findContradictions(entry));
      for (const { table, key } of effectsOf(entry))
        wanted.set(`${table} ${key}`, (wanted.get(`${table} ${key}`) ?? 0) + 1);
    }
    for (const [effect, count] of wanted)
      if (count !== 1 || found.get(effect) !== 1)
        findings.lost.push(`${effect}: answered ${count} times, found ${found.get(effect) ?? 0} times`);
    for (const effect of found.keys()) if (!wanted.has(effect)) findings.phantom.push(effect);
    findings.lost = [...findings.lost, ...(await findUntold(session, received, feeds))];
    return findings;
  } finally {
    await session.end();
  }
}

function findContradictions(entry: Entry): string[] {
  const final = finalOf(entry);
  if (entry.call.kind === "query" || final === null) return [];
  return entry.attempts
    .filter((attempt) => ["ok", "refused"].includes(verdictOf(attempt)) && attempt.text !== final.text)
    .map((attempt) => `${entry.call.kind} ${entry.call.requestId}: ${final.text} and ${attempt.text}`);
}

// What must be there because of this call. Keys are those of readEffects.
function effectsOf(entry: Entry): Effect[] {
  const { call } = entry;
  const final = finalOf(entry);
  if (final === null || call.kind === "query") return [];
  const tenant = tenants[call.variant].id;
  const scope = `${tenant} ${callerOf(call.accessKey) ?? "-"}`;
  const record = { table: "request", key: `${scope} ${call.requestId} ${call.kind} ${final.status} ${final.text}` };
  if (verdictOf(final) !== "ok") return [record];
  const told = JSON.parse(final.text);
  const movement = (id: string) =>
    ["ledger", "event", "feed"].map((table) => ({ table, key: `${tenant} ${suffixOf(id)}` }));
  switch (call.kind) {
    case "lock":
      return [record, { table: "redemption", key: `${scope} ${call.requestId} ${told.redemption}` }];
    case "redeem":
      return [
        record,
        { table: "redemption", key: `${scope} ${call.requestId} ${told.redemption}` },
        ...movement(told.redemption),
      ];
    case "confirm":
      return [record, ...movement(told.redemption)];
    case "reverse":
      return [
        record,
        { table: "reversal", key: `${tenant} ${told.reversal} ${told.redemption}` },
        ...movement(told.reversal),
      ];
    case "cancel":
      return [record, { table: "cancelled", key: `${tenant} ${told.redemption}` }];
    case "void":
      return [
        record,
        { table: "voiding", key: `${tenant} ${told.coupon_id}` },
        { table: "voided event", key: `${tenant} ${told.coupon_id}` },
        { table: "voided feed", key: `${tenant} ${told.coupon_id}` },
      ];
    case "create_batch":
      return [
        record,
        { table: "batch", key: `${scope} ${call.requestId} ${told.batch.external_id}` },
        { table: "minted", key: `${tenant} ${told.batch.external_id} ${call.count}` },
      ];
    case "allocate_batch":
      return [record, { table: "allocated", key: `${tenant} ${(entry.body as { batch: string }).batch}` }];
  }
}

// How often each is there.
async function readEffects(session: Session): Promise<Map<string, number>> {
  const rows = await session.rows<{ effect: string; request: string | null }>(`
    with batch as (select b.*, t.external_id as tenant, p.external_id as caller from core.batch b join core.tenant t using (tenant_id)
                   left join core.party p on p.tenant_id = b.tenant_id and p.party_id = b.caller_id),
    fed as (select t.external_id as tenant, e.event_type, rules.format_id('evt', f.event_id) as event, rules.format_id('cpn', e.coupon_id) as coupon
            from core.feed_event f join core.tenant t using (tenant_id) join core.event e using (tenant_id, event_id))
    select concat_ws(' ', 'request', q.tenant, coalesce(q.caller, '-'), q.request_id, q.operation, q.http_status, q.response) as effect, q.request_id as request from report.request q
    union all select concat_ws(' ', 'redemption', r.tenant, coalesce(r.caller, '-'), r.lock_request_id, r.redemption), null from report.redemption r
    union all select concat_ws(' ', 'reversal', r.tenant, r.reversal, r.redemption), null from report.redemption r where r.reversal is not null
    union all select concat_ws(' ', 'cancelled', r.tenant, r.redemption), null from report.redemption r where r.stored_status = 'CANCELLED'
    union all select concat_ws(' ', 'ledger', l.tenant, substr(l.entry, 5)), null from report.ledger l
    union all select concat_ws(' ', 'event', e.tenant, substr(e.event, 5)), null from report.event e where e.redemption is not null
    union all select concat_ws(' ', 'feed', f.tenant, substr(f.event, 5)), null from fed f where f.event_type in ('coupon.redeemed', 'coupon.reversed')
    union all select concat_ws(' ', 'voiding', v.tenant, v.coupon), null from report.voiding v
    union all select concat_ws(' ', 'voided event', e.tenant, e.coupon), null from report.event e where e.event_type = 'coupon.voided'
    union all select concat_ws(' ', 'voided feed', f.tenant, f.coupon), null from fed f where f.event_type = 'coupon.voided'
    union all select concat_ws(' ', 'batch', b.tenant, coalesce(b.caller, '-'), b.request_id, b.external_id), b.request_id from batch b
    union all select concat_ws(' ', 'minted', b.tenant, b.external_id, count(*)), b.request_id
              from batch b join core.coupon c using (tenant_id, batch_id) where b.status <> 'PENDING' group by b.tenant, b.external_id, b.request_id
    union all select concat_ws(' ', 'allocated', b.tenant, b.external_id), b.request_id from batch b where b.status = 'ALLOCATED'`);
  const found = new Map<string, number>();
  for (const { effect, request } of rows)
    if (request === null || !isOurs(request)) found.set(effect, (found.get(effect) ?? 0) + 1);
  return found;
}

// Whoever read the feed page by page saw just what stands in it, and the subscriber got all that is his.
async function findUntold(session: Session, received: Set<string>, feeds: Parts["feeds"]): Promise<string[]> {
  const rows = await session.rows<{ event: string }>(
    `select e.event from report.event e join core.tenant t on t.external_id = e.tenant join core.party p on p.tenant_id = t.tenant_id and p.external_id = e.party
     join core.webhook w on w.tenant_id = p.tenant_id and w.party_id = p.party_id`,
  );
  const untold = rows.filter(({ event }) => !received.has(event)).map(({ event }) => `webhook ${event}: never came`);
  for (const variant of ["A", "B"] as const) {
    const stored = await session.rows<{ event: string }>(
      `select rules.format_id('evt', f.event_id) as event from core.feed_event f join core.tenant t using (tenant_id) where t.external_id = $1 order by f.position`,
      [tenants[variant].id],
    );
    const wrong = stored.findIndex(({ event }, index) => feeds[variant][index] !== event);
    if (wrong !== -1 || feeds[variant].length !== stored.length) {
      untold.push(
        `feed of ${tenants[variant].id}: ${feeds[variant].length} events read, ${stored.length} stored, the first that differs is number ${wrong + 1}`,
      );
    }
  }
  return untold;
}

async function findCorruption(session: Session): Promise<string[]> {
  const found: string[] = [];
  const indexes = await session.rows<{ name: string }>(
    `select i.indexrelid::regclass::text as name
     from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam
     where a.amname = 'btree' and c.relkind = 'i' and c.relpersistence <> 't'`,
  );
  for (const { name } of indexes) {
    // It raises what it finds.
    await session
      .rows("select bt_index_check($1::text::regclass, true)", [name])
      .catch((error: unknown) => found.push(`${name}: ${messageOf(error)}`));
  }
  const rows = await session.rows<{ found: string }>(
    `select format('%s block %s: %s', c.oid::regclass, v.blkno, v.msg) as found
     from pg_class c, lateral verify_heapam(c.oid::regclass) v where c.relkind in ('r', 't', 'm') and c.relpersistence <> 't'`,
  );
  return [...found, ...rows.map((row) => row.found)];
}

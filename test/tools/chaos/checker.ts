// Compares the answers with the database in both directions: every effect that was answered ok exists exactly once, and
// nothing else exists. Then checks what must hold after any run: invariants, feeds, webhooks, no deadlock.
import type { Address } from "../../../src/config/database-address.ts";
import { openSession } from "../../../src/database/connect.ts";
import type { Database, Session } from "../../../src/database/types.ts";
import { findBrokenInvariants } from "../../support/inspect.ts";
import { finalOf, isFinal, verdictOf, type Entry, type History } from "./clients.ts";
import { judgeHistories } from "./histories.ts";
import type { Subject } from "./operations.ts";
import { tenants, type Variant } from "./workload.ts";

// lost: answered ok, but not there exactly once. phantom: not answered ok, but there. contradictions: different final
// answers to one request_id.
// unfounded: calls that were turned away without a reason. unexplained, undecided: histories of coupons.
type Kind =
  | "lost"
  | "phantom"
  | "contradictions"
  | "unfounded"
  | "unexplained"
  | "undecided"
  | "undelivered"
  | "feeds"
  | "invariants"
  | "deadlocks";
type Findings = Record<Kind, string[]>;
// received: the events of webhooks. feeds: the events that readers have pulled since the beginning.
type Evidence = {
  address: Address;
  history: History;
  coupons: Record<Variant, Subject[]>;
  serverLog: string;
  received: Set<string>;
  feeds: Record<Variant, string[]>;
  print(line: string): void;
};

export async function check(evidence: Evidence): Promise<Findings> {
  const { address, history, coupons, serverLog, received, feeds, print } = evidence;
  const { unexplained, undecided, ...judged } = judgeHistories(history, [...coupons.A, ...coupons.B]);
  print(
    `${judged.calls} calls on ${judged.coupons} coupons, at most ${judged.most} on one, were put in order in ` +
      `${Math.round(judged.ms)} ms; ${judged.states} states, ${undecided.length} coupons undecided`,
  );
  const session = openSession(address, { name: "coupon chaos check" });
  try {
    await session.run("set work_mem = '256MB'; analyze");
    return {
      ...(await compareAnswers(session, history)),
      unfounded: [...history.entries.values()].flatMap(findUnfounded),
      unexplained,
      undecided,
      undelivered: await findUndelivered(session, received),
      feeds: await findWrongFeeds(session, feeds),
      invariants: await findBrokenInvariants(session),
      deadlocks: serverLog.match(/.*deadlock detected.*/g) ?? [],
    };
  } finally {
    await session.end();
  }
}

export async function compareAnswers(session: Pick<Database, "rows">, history: History) {
  const entries = [...history.entries.values()];
  const found = await readEffects(session);
  const expected = new Map<string, number>();
  for (const effect of entries.flatMap(effectsOf)) expected.set(effect, (expected.get(effect) ?? 0) + 1);
  const lost = [...expected]
    .filter(([effect, count]) => count !== 1 || found.get(effect) !== 1)
    .map(([effect, count]) => `${effect}: answered ${count} times, found ${found.get(effect) ?? 0} times`);
  const phantom = [...found.keys()].filter((effect) => !expected.has(effect));
  return { lost, phantom, contradictions: entries.flatMap(findContradictions) };
}

// The effects that must exist because of the answer, in the words of readEffects.
function effectsOf(entry: Entry): string[] {
  const { kind, variant, accessKey, requestId, values } = entry.call;
  const final = finalOf(entry);
  if (final === null || kind === "query") return [];
  const tenant = tenants[variant].id;
  // A request_id is unique within a party in Variant B, within the tenant in A.
  const caller = variant === "A" ? "-" : accessKey.replace("ak_", "pty_");
  const record = `request ${tenant} ${caller} ${requestId} ${kind} ${final.status} ${final.text}`;
  if (verdictOf(final) !== "ok") return [record];
  const answer = JSON.parse(final.text);
  const redemption = `redemption ${tenant} ${caller} ${requestId} ${answer.redemption}`;
  const movement = (id: string) => ["ledger", "event", "feed"].map((table) => `${table} ${tenant} ${id.slice(4)}`);
  switch (kind) {
    case "lock":
      return [record, redemption];
    case "redeem":
      return [record, redemption, ...movement(answer.redemption)];
    case "confirm":
      return [record, ...movement(answer.redemption)];
    case "reverse":
      return [record, `reversal ${tenant} ${answer.reversal} ${answer.redemption}`, ...movement(answer.reversal)];
    case "cancel":
      return [record, `cancelled ${tenant} ${answer.redemption}`];
    case "void":
      return [record, ...["voiding", "event", "feed"].map((table) => `${table} ${tenant} ${answer.coupon_id}`)];
    case "create_batch": {
      const batch = answer.batch.external_id;
      const minted = `minted ${tenant} ${batch} ${values["total_count"] as number}`;
      return [record, `batch ${tenant} ${caller} ${requestId} ${batch}`, minted];
    }
    case "allocate_batch":
      return [record, `allocated ${tenant} ${entry.body["batch"] as string}`];
  }
}

// The effects in the database, and how often each of them exists. Request IDs of the harness begin with test-.
async function readEffects(session: Pick<Database, "rows">): Promise<Map<string, number>> {
  const rows = await session.rows<{ effect: string; count: number }>(`
    with batch as (
      select b.*, t.external_id as tenant, p.external_id as caller
      from core.batch b
      join core.tenant t using (tenant_id)
      left join core.party p on p.tenant_id = b.tenant_id and p.party_id = b.caller_id
      where b.request_id not like 'test-%'),
    event as (
      select e.event_seq, t.external_id as tenant,
             case e.event_type
               when 'coupon.voided' then rules.format_id('cpn', e.coupon_id)
               else substr(rules.format_id('evt', e.event_id), 5)
             end as subject
      from rules.event e join core.tenant t using (tenant_id)
      where e.event_type in ('coupon.redeemed', 'coupon.reversed', 'coupon.voided')),
    effect (effect) as (
      select concat_ws(' ', 'request', q.tenant, coalesce(q.caller, '-'), q.request_id, q.operation, q.http_status,
                       q.response)
      from report.request q where q.request_id not like 'test-%'
      union all
      select concat_ws(' ', 'redemption', r.tenant, coalesce(r.caller, '-'), r.lock_request_id, r.redemption)
      from report.redemption r
      union all
      select concat_ws(' ', 'reversal', r.tenant, r.reversal, r.redemption)
      from report.redemption r where r.reversal is not null
      union all
      select concat_ws(' ', 'cancelled', r.tenant, r.redemption)
      from report.redemption r where r.stored_status = 'CANCELLED'
      union all
      select concat_ws(' ', 'ledger', l.tenant, substr(l.entry, 5)) from report.ledger l
      union all
      select concat_ws(' ', 'voiding', v.tenant, v.coupon) from report.voiding v
      union all
      select concat_ws(' ', 'event', e.tenant, e.subject) from event e
      union all
      select concat_ws(' ', 'feed', e.tenant, e.subject) from rules.feed_event f join event e using (event_seq)
      union all
      select concat_ws(' ', 'batch', b.tenant, coalesce(b.caller, '-'), b.request_id, b.external_id) from batch b
      union all
      select concat_ws(' ', 'minted', b.tenant, b.external_id, count(*))
      from batch b join core.coupon c using (tenant_id, batch_id)
      where b.status <> 'PENDING' group by b.tenant, b.external_id
      union all
      select concat_ws(' ', 'allocated', b.tenant, b.external_id) from batch b where b.status = 'ALLOCATED')
    select effect, count(*)::int as count from effect group by effect`);
  return new Map(rows.map(({ effect, count }) => [effect, count]));
}

function findContradictions(entry: Entry): string[] {
  const final = finalOf(entry);
  if (entry.call.kind === "query" || final === null) return [];
  const answers = entry.attempts.filter(isFinal);
  const what = `${entry.call.kind} ${entry.call.requestId}`;
  const others = answers
    .filter(({ text }) => text !== final.text)
    .map(({ text }) => `${what}: ${final.text} and ${text}`);
  const fresh = answers.filter(({ isReplay }) => !isReplay).length;
  return fresh > 1 ? [...others, `${what}: ${fresh} answers are not replays`] : others;
}

// Every call of the workload is well-formed.
const findUnfounded = ({ call: { kind, requestId }, attempts }: Entry): string[] =>
  attempts
    .filter((attempt) => verdictOf(attempt) === "unprocessed")
    .map(({ status, text }) => `${kind} ${requestId}: ${status} ${text}`);

// Events that the webhook subscriber never received.
async function findUndelivered(session: Session, received: Set<string>): Promise<string[]> {
  const rows = await session.rows<{ event: string }>(
    `select e.event
     from report.event e
     join core.tenant t on t.external_id = e.tenant
     join core.party p on p.tenant_id = t.tenant_id and p.external_id = e.party
     join core.webhook w on w.tenant_id = p.tenant_id and w.party_id = p.party_id`,
  );
  return rows.filter(({ event }) => !received.has(event)).map(({ event }) => `webhook ${event}: never delivered`);
}

// Feeds whose pages, read one by one, did not show the stored events in order.
async function findWrongFeeds(session: Session, feeds: Evidence["feeds"]): Promise<string[]> {
  const wrong: string[] = [];
  for (const variant of ["A", "B"] as const) {
    const { id } = tenants[variant];
    const read = feeds[variant];
    const stored = await session.rows<{ event: string }>(
      `select rules.format_id('evt', f.event_id) as event
       from rules.feed_event f join core.tenant t using (tenant_id)
       where t.external_id = $1 order by f.position`,
      [id],
    );
    const at = stored.findIndex(({ event }, index) => read[index] !== event);
    if (at !== -1 || read.length !== stored.length)
      wrong.push(`feed of ${id}: read ${read.length} events, stored ${stored.length}, first difference at ${at + 1}`);
  }
  return wrong;
}

// Compares the answers with the database in both directions: every effect that was answered ok exists exactly once, and
// nothing else exists. Then checks what must hold after any run: invariants, feeds, webhooks, pages, indexes, no
// deadlock.
import { openSession } from "../../src/database/connect.ts";
import type { Address } from "../../src/common/database-address.ts";
import type { Session } from "../../src/database/types.ts";
import { messageOf } from "../../src/common/program.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { readEffects, effectsOf } from "./effects.ts";
import { finalOf, outcomeOf, verdictOf, type Entry, type History } from "./history.ts";
import { tenants } from "./tenants.ts";

export type Findings = {
  // Answered ok, but not there exactly once.
  lost: string[];
  // Not answered ok, but there.
  phantom: string[];
  // Different final answers to one request_id.
  contradictions: string[];
  invariants: string[];
  corruption: string[];
  deadlocks: number;
  checked: { ok: number; refused: number; unprocessed: number };
};
export type Parts = {
  address: Address;
  history: History;
  serverLog: string;
  received: Set<string>;
  feeds: Record<"A" | "B", string[]>;
};

export async function check({ address, history, serverLog, received, feeds }: Parts): Promise<Findings> {
  const session = openSession(address, { name: "coupon chaos check" });
  try {
    await session.run("set work_mem = '256MB'; analyze");
    const entries = [...history.entries.values()];
    const { lost, phantom } = compareEffects(entries, await readEffects(session));
    return {
      lost: [...lost, ...(await findUndelivered(session, received)), ...(await findWrongFeeds(session, feeds))],
      phantom,
      contradictions: entries.flatMap(findContradictions),
      invariants: await findBrokenInvariants(session),
      corruption: await findCorruption(session),
      deadlocks: await countDeadlocks(session, serverLog),
      checked: countOutcomes(entries),
    };
  } finally {
    await session.end();
  }
}

function compareEffects(entries: Entry[], found: Map<string, number>): Pick<Findings, "lost" | "phantom"> {
  const expected = new Map<string, number>();
  for (const entry of entries)
    for (const effect of effectsOf(entry)) expected.set(effect, (expected.get(effect) ?? 0) + 1);
  const lost = [...expected]
    .filter(([effect, count]) => count !== 1 || found.get(effect) !== 1)
    .map(([effect, count]) => `${effect}: answered ${count} times, found ${found.get(effect) ?? 0} times`);
  return { lost, phantom: [...found.keys()].filter((effect) => !expected.has(effect)) };
}

function countOutcomes(entries: Entry[]): Findings["checked"] {
  const count = (outcome: string) => entries.filter((entry) => outcomeOf(entry) === outcome).length;
  return { ok: count("ok"), refused: count("refused"), unprocessed: count("unprocessed") };
}

function findContradictions(entry: Entry): string[] {
  const final = finalOf(entry);
  if (entry.call.kind === "query" || final === null) return [];
  return entry.attempts
    .filter((attempt) => ["ok", "refused"].includes(verdictOf(attempt)) && attempt.text !== final.text)
    .map((attempt) => `${entry.call.kind} ${entry.call.requestId}: ${final.text} and ${attempt.text}`);
}

async function countDeadlocks(session: Session, serverLog: string): Promise<number> {
  const [row] = await session.rows<{ count: string }>("select sum(deadlocks) as count from pg_stat_database");
  return Number(row!.count) + (serverLog.match(/deadlock detected/g) ?? []).length;
}

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
async function findWrongFeeds(session: Session, feeds: Parts["feeds"]): Promise<string[]> {
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

async function findCorruption(session: Session): Promise<string[]> {
  const found: string[] = [];
  const indexes = await session.rows<{ name: string }>(
    `select i.indexrelid::regclass::text as name
     from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam
     where a.amname = 'btree' and c.relkind = 'i' and c.relpersistence <> 't'`,
  );
  for (const { name } of indexes) {
    // The check raises an error for what it finds.
    await session
      .rows("select bt_index_check($1::text::regclass, true)", [name])
      .catch((error: unknown) => found.push(`${name}: ${messageOf(error)}`));
  }
  const rows = await session.rows<{ found: string }>(
    `select format('%s block %s: %s', c.oid::regclass, v.blkno, v.msg) as found
     from pg_class c, lateral verify_heapam(c.oid::regclass) v
     where c.relkind in ('r', 't', 'm') and c.relpersistence <> 't'`,
  );
  return [...found, ...rows.map((row) => row.found)];
}

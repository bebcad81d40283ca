// The number of rows that a call reads does not grow with the tables, even on a connection that planned its statements
// when the tables were empty, and before they are analyzed.
import t from "tap";
import { connect, openSession } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import { readCounts, stopAutovacuum, type Reads } from "../support/count-reads.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { template } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";

let service: Running;
let till: Session;
let caller: { tenant_id: number; credential_id: number };
const merchant = "mch_a";

type Call = { operation: string; args: object; request_id?: string; body_hash?: null };
type Answer = { http_status: number; body: string };

// With isAnalyzed the planner knows that the tables are empty. Without, it knows nothing, and no autovacuum tells it.
async function open({ isAnalyzed }: { isAnalyzed: boolean }): Promise<void> {
  service = await startService(t);
  await service.apply({
    tenants: [{ id: "ten_a", name: "A", variant: "A", templates: [template("tpl_many", "pty_a")] }],
  });
  const dba = openSession(service.address, { name: "coupon test dba" });
  await stopAutovacuum(dba);
  if (isAnalyzed) await dba.run("vacuum analyze");
  await dba.end();
  till = openSession(service.address, { name: "coupon test till", role: "coupon_api" });
  t.teardown(till.end);
  [caller] = (await till.rows<typeof caller>("select tenant_id, credential_id from gate.find_credential('ak_a')")) as [
    typeof caller,
  ];
}

async function perform(calls: Call[], isAlone = false): Promise<Answer[]> {
  const sent = calls.map((call) => ({
    credential_id: caller.credential_id,
    nonce: newRequestId(),
    request_id: newRequestId(),
    idempotency_key: newRequestId(),
    body_hash: "0".repeat(16),
    ...call,
  }));
  return till.rows<Answer>("select http_status, body from gate.perform($1, $2::text::jsonb, $3) order by ordinal", [
    caller.tenant_id,
    JSON.stringify(sent),
    isAlone,
  ]);
}

async function must(calls: Call[], isAlone = false): Promise<any[]> {
  const rows = await perform(calls, isAlone);
  for (const { http_status, body } of rows) if (http_status !== 200) throw new Error(body);
  return rows.map(({ body }) => JSON.parse(body));
}

async function lookupsOf(count: number): Promise<string[]> {
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_many", count);
  const rows = await service.owner.rows<{ lookup: string }>(
    `select c.lookup_hash::text as lookup
     from core.coupon c join core.batch b using (tenant_id, batch_id) where b.external_id = $1`,
    [id],
  );
  return rows.map(({ lookup }) => lookup);
}

// Runs every operation of a till once, in groups of one. Returns the table scans and rows of each.
async function runEachOnce(coupons: string[], isAlone: boolean): Promise<Record<string, Reads>> {
  const reads: Record<string, Reads> = {};
  async function one(call: Call): Promise<any> {
    await till.run("begin");
    const before = await readCounts(till);
    const [answer] = await must([call], isAlone);
    await till.run("set constraints all immediate");
    const after = await readCounts(till);
    await till.run("commit");
    reads[call.operation] = { tables: after.tables - before.tables, rows: after.rows - before.rows };
    return answer;
  }
  const [first, second, third, fourth] = coupons as [string, string, string, string];
  const { redemption } = await one({ operation: "redeem", args: { coupon: first, merchant } });
  await one({ operation: "reverse", args: { redemption } });
  for (const [coupon, next] of [
    [second, "confirm"],
    [third, "cancel"],
  ] as const) {
    const lock = newRequestId();
    await one({ operation: "lock", request_id: lock, args: { coupon, merchant } });
    await one({ operation: next, args: { coupon, merchant, lock_request_id: lock } });
  }
  await one({ operation: "query", body_hash: null, args: { coupon: second, merchant } });
  await one({ operation: "void", args: { coupon: fourth, merchant } });
  return reads;
}

for (const isAnalyzed of [true, false])
  t.test(
    `A call reads few rows of large tables that were ${isAnalyzed ? "" : "not "}analyzed while empty`,
    async (t) => {
      await open({ isAnalyzed });
      const worker = connect(service.address, { name: "coupon test worker", role: "coupon_worker", max: 1 });
      t.teardown(() => worker.end());
      await worker.rows("select * from jobs.sequence_events(100)");
      const few = await lookupsOf(8);
      const before = {
        together: await runEachOnce(few.slice(0, 4), false),
        alone: await runEachOnce(few.slice(4), true),
      };

      const many = await lookupsOf(6_000);
      for (let at = 8; at + 50 <= 5_000; at += 50) {
        await must(many.slice(at, at + 50).map((coupon) => ({ operation: "redeem", args: { coupon, merchant } })));
      }
      await worker.rows("select * from jobs.sequence_events(10000)");
      const after = {
        together: await runEachOnce(many.slice(0, 4), false),
        alone: await runEachOnce(many.slice(4, 8), true),
      };
      t.strictSame(Object.keys(after.together).toSorted(), [
        "cancel",
        "confirm",
        "lock",
        "query",
        "redeem",
        "reverse",
        "void",
      ]);
      for (const way of ["together", "alone"] as const) {
        for (const [operation, { tables, rows }] of Object.entries(after[way])) {
          // For a table that it knows to be empty, the planner finds every index that begins with the tenant equally
          // good. jobs.analyze_grown_tables ends this a second later; only redeem and lock must be right before.
          if (isAnalyzed && operation !== "redeem" && operation !== "lock") continue;
          t.equal(tables, 0, `${operation}, ${way}: no table scan`);
          t.ok(rows <= 100, `${operation}, ${way}: ${rows} rows; ${before[way][operation]!.rows} in small tables`);
        }
      }
    },
  );

t.test("Grown tables are analyzed at once, so no plan from empty tables stays in use", async (t) => {
  const worker = connect(service.address, { name: "coupon test worker", role: "coupon_worker", max: 1 });
  t.teardown(() => worker.end());
  const known = async () => {
    const [row] = await service.owner.rows<{ coupons: number; requests: number }>(
      `select (select reltuples from pg_class where oid = 'core.coupon'::regclass)::int as coupons,
              (select reltuples from pg_class where oid = 'core.request'::regclass)::int as requests`,
    );
    return { ...row! };
  };
  const analyze = async () =>
    (await worker.rows<{ count: number }>("select jobs.analyze_grown_tables() as count"))[0]!.count;
  // Sessions send their statistics within a second.
  const areKnown = async () => {
    await analyze();
    const { coupons, requests } = await known();
    return coupons >= 6_000 && requests >= 4_000;
  };
  await waitUntil("6,000 coupons and 4,000 requests to be known", areKnown, { everyMs: 100, withinMs: 60_000 });
  const isOver = async () => (await analyze()) === 0;
  await waitUntil("nothing to be left to analyze", isOver, { everyMs: 100, withinMs: 60_000 });
});

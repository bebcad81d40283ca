// What holds for all views of report: who reads them, how a balance adds up, and which tables decide about their rows.
import t from "tap";
import { openSession } from "../../src/database/connect.ts";
import { states, type State } from "./api/states.ts";
import { arrange, setUpVariant } from "../support/arrange.ts";
import { startService, type Running } from "../support/service.ts";

let service: Running;
t.before(async () => {
  service = await startService(t);
  const all = Object.keys(states) as State[];
  // Its distributor, maker and merchant have the other coupons in EUR.
  const reissued = { currency: "USD" };
  for (const variant of ["A", "B"] as const)
    await arrange(service, await setUpVariant(service, variant, { reissued }), all, 1);
  await service.owner.rows("select jobs.sequence_events(1000)");
});

// A view calls functions as its reader. Each read has a new session, because a session does not look up again what
// another role has used in it.
t.test("Both reading roles can read every view of report while it has rows", async (t) => {
  const views = await service.owner.rows<{ name: string }>(
    `select c.relname as name from pg_class c
     where c.relnamespace = 'report'::regnamespace and c.relkind = 'v' order by 1`,
  );
  // Readers lack usage on our types, so their own expressions over such a column would find no operators.
  const ours = await service.owner.rows(
    `select a.attrelid::regclass::text as view, a.attname as column from pg_attribute a
     join pg_class c on c.oid = a.attrelid join pg_type t on t.oid = a.atttypid
     where c.relnamespace = 'report'::regnamespace and a.attnum > 0 and t.typtype = 'd'`,
  );
  t.strictSame([...ours], [], "all columns are of base types");
  const filled = new Set<string>();
  for (const role of ["coupon_report", "coupon_admin"]) {
    for (const { name } of views) {
      const session = openSession(service.address, { name: "coupon test reader", role });
      const rows = await session.rows(`select * from report.${name}`).catch((error: Error) => error);
      await session.end();
      if (!Array.isArray(rows)) t.fail(`${role} reads report.${name}: ${rows.message}`);
      else if (rows.length > 0) filled.add(name);
    }
  }
  for (const name of [
    "coupon",
    "redemption",
    "event",
    "ledger",
    "voiding",
    "posting",
    "maker_balance",
    "merchant_balance",
    "distributor_balance",
  ]) {
    t.ok(filled.has(name), `report.${name} had rows`);
  }
});

t.test("A balance adds one entry of its currency after the other, even of the same moment", async (t) => {
  const psql = openSession(service.address, { name: "psql" });
  t.teardown(() => psql.end());
  await psql.run("set session_replication_role = replica; update core.ledger_entry set recorded_at = '2026-01-01'");
  for (const owner of ["distributor", "maker", "merchant"]) {
    const rows = await psql.rows<{ name: string; minor: number; balance: number }>(
      `select concat_ws(' ', tenant, ${owner}, currency) as name, (100 * amount)::int as minor,
              (100 * balance)::int as balance
       from report.${owner}_balance order by entry`,
    );
    const sums = new Map<string, number>();
    const expected = rows.map(({ name, minor }) => {
      sums.set(name, (sums.get(name) ?? 0) + minor);
      return sums.get(name);
    });
    t.ok(rows.length > 2 * sums.size && sums.size === 4, `${rows.length} entries, two currencies of each ${owner}`);
    t.strictSame(
      rows.map(({ balance }) => balance),
      expected,
      `report.${owner}_balance`,
    );
  }
});

// A join that adds names is left out of the plan of a question that reads no name. So it can neither drop a row nor
// double it.
t.test("Counting the rows of a view reads only the tables that decide how many there are", async (t) => {
  const session = openSession(service.address, { name: "coupon test" });
  t.teardown(() => session.end());
  const views = await session.rows<{ name: string }>(
    `select relname::text as name from pg_class
     where relnamespace = 'report'::regnamespace and relkind = 'v' and relname <> 'invariants' order by 1`,
  );
  const read: Record<string, string> = {};
  for (const { name } of views) {
    const [row] = await session.rows<{ "QUERY PLAN": unknown }>(
      `explain (format json) select count(*) from report.${name}`,
    );
    const text = JSON.stringify(row!["QUERY PLAN"]);
    read[name] = [...new Set([...text.matchAll(/"Relation Name": ?"(\w+)"/g)].map((found) => found[1]))]
      .sort()
      .join(" ");
  }
  t.strictSame(read, {
    audit: "audit",
    batch: "batch party template tenant",
    // The batch of a coupon is found by its index: see the view.
    coupon: "batch coupon",
    credential: "credential tenant",
    delivery: "delivery event ledger_entry party tenant",
    delivery_attempt: "delivery_attempt",
    distributor_balance: "ledger_entry party tenant",
    event: "event ledger_entry",
    ledger: "coupon ledger_entry merchant redemption reversal",
    maker_balance: "batch coupon ledger_entry merchant party redemption reversal tenant",
    master_key: "master_key",
    merchant: "merchant party tenant",
    merchant_balance: "coupon ledger_entry merchant redemption reversal tenant",
    party: "party tenant",
    posting: "coupon ledger_entry merchant posting_page redemption reversal",
    redemption: "merchant redemption",
    request: "request",
    statement: "statement",
    statement_line: "statement_line",
    stuck_work: "party stuck_work tenant",
    template: "currency party template tenant",
    tenant: "tenant",
    voiding: "voiding",
    webhook_health: "delivery delivery_attempt event ledger_entry party tenant webhook",
  });
});

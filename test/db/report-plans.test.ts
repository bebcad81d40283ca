// Each natural question reads rows in proportion to what it is about: on tables that were never analyzed, and again
// after analyze. A tenth of the size of docs/database.md.
import t from "tap";
import { openSession } from "../../src/database/connect.ts";
import { stopAutovacuum } from "../support/count-reads.ts";
import { createDatabase } from "../support/database.ts";
import { analyzeSmallTables, fillReports } from "../bench/report-data.ts";
import { questions } from "../bench/report-questions.ts";
import { readExamples, readQuestion } from "../bench/report-reads.ts";

t.test("Each question reads rows in proportion to what it is about", async (t) => {
  const { address, drop } = await createDatabase({ mayBreakInvariants: true });
  const dba = openSession(address, { name: "coupon test dba" });
  const reader = openSession(address, { name: "coupon test reader", role: "coupon_report" });
  // As the embedded server has it: an index is preferred to a whole table, as it should be on anything but a disk.
  await reader.run("set random_page_cost = 1.1; set statement_timeout = '60s'");
  t.teardown(async () => {
    await Promise.all([dba.end(), reader.end()]);
    await drop();
  });
  const analyzed = async () =>
    (await dba.rows("select from pg_class where oid = 'core.ledger_entry'::regclass and reltuples >= 0")).length > 0;
  await stopAutovacuum(dba);
  await fillReports(address, { coupons: 100_000, redemptions: 20_000 });
  await analyzeSmallTables(dba);
  const examples = await readExamples(reader);

  for (const hasStatistics of [false, true]) {
    if (hasStatistics) await dba.run("vacuum analyze");
    t.equal(await analyzed(), hasStatistics, hasStatistics ? "analyzed" : "never analyzed");
    for (const question of questions.filter(({ needsStatistics }) => hasStatistics || !needsStatistics)) {
      const { answer, about, read, scans } = await readQuestion(reader, question, examples);
      const most = 8 * about + (question.besides ?? 20);
      t.ok(answer > 0 && read <= most, `${question.name}: ${answer} rows from ${read}, at most ${most}`, { scans });
    }
  }
});

// A join that adds names is left out of the plan of a question that reads no name. So it can neither drop a row nor
// double it.
t.test("Counting the rows of a view reads only the tables that decide how many there are", async (t) => {
  const { address, drop } = await createDatabase();
  const session = openSession(address, { name: "coupon test" });
  t.teardown(async () => {
    await session.end();
    await drop();
  });
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
    template: "currency party template tenant",
    tenant: "tenant",
    voiding: "voiding",
    webhook_health: "delivery delivery_attempt event ledger_entry party tenant webhook",
  });
});

// Each natural question reads rows in proportion to what it is about: on tables that were never analyzed, and again
// after analyze. A twentieth of the size of docs/database.md.
import t from "tap";
import { openSession } from "../../src/database/connect.ts";
import { createDatabase } from "../support/database.ts";
import { fillReports } from "../tools/bench/report-data.ts";
import { questions, readExamples, readQuestion } from "../tools/bench/reports.ts";

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
  await fillReports(address, 50_000);
  const examples = await readExamples(reader);

  for (const hasStatistics of [false, true]) {
    if (hasStatistics) await dba.run("vacuum analyze");
    t.equal(await analyzed(), hasStatistics, hasStatistics ? "analyzed" : "never analyzed");
    for (const question of questions.filter(({ needsStatistics }) => hasStatistics || !needsStatistics)) {
      const { answer, about, read, scans } = await readQuestion(reader, question, examples);
      const most = 8 * about + (question.besides ?? 20);
      t.ok(answer > 0 && read <= most, `${question.sql}: ${answer} rows from ${read}, at most ${most}`, { scans });
    }
  }
});

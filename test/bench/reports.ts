// reports: the time of each natural question about a full database, before its large tables are analyzed and after.
import { openSession } from "../../src/database/connect.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { fillReports } from "./report-data.ts";
import { questions } from "./report-questions.ts";
import { readExamples, readQuestion } from "./report-reads.ts";
import { median, type Report, type Result } from "./results.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";

const growingTables = [
  "coupon",
  "redemption",
  "reversal",
  "event",
  "ledger_entry",
  "posting_page",
  "request",
  "voiding",
];
const smallTables = ["tenant", "party", "merchant", "template", "batch", "currency"];

export async function benchReports(server: Server, { reportCoupons, rounds }: Settings): Promise<Report> {
  const { address, drop } = await server.createDatabase();
  await migrate(address);
  const dba = openSession(address, { name: "coupon bench dba" });
  const reader = openSession(address, { name: "coupon bench reader", role: "coupon_report" });
  const results: Result[] = [];
  try {
    for (const table of growingTables) await dba.run(`alter table core.${table} set (autovacuum_enabled = off)`);
    await fillReports(address, { coupons: reportCoupons, redemptions: Math.ceil(reportCoupons / 5) });
    // The worker analyzes small tables as soon as they have rows.
    await dba.run(`analyze ${smallTables.map((table) => `core.${table}`).join(", ")}`);
    const examples = await readExamples(reader);
    for (const state of ["never analyzed", "analyzed"]) {
      if (state === "analyzed") await dba.run("vacuum analyze");
      for (const question of questions) {
        const times: number[] = [];
        for (let round = 0; round < rounds; round += 1) times.push((await readQuestion(reader, question, examples)).ms);
        results.push({ name: `${question.name}, ${state}`, value: median(times), unit: "ms" });
      }
    }
  } finally {
    await Promise.all([dba.end(), reader.end()]);
    await drop();
  }
  return { results };
}

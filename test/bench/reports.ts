// reports: the time of each natural question about a full database, before its large tables are analyzed and after.
import { openSession } from "../../src/database/connect.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { analyzeSmallTables, fillReports } from "./report-data.ts";
import { questions } from "./report-questions.ts";
import { readExamples, readQuestion } from "./report-reads.ts";
import { median, type Report, type Result } from "./results.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { stopAutovacuum } from "../support/count-reads.ts";

export async function benchReports(server: Server, { reportCoupons, rounds }: Settings): Promise<Report> {
  const { address, drop } = await server.createDatabase();
  await migrate(address);
  const dba = openSession(address, { name: "coupon bench dba" });
  const reader = openSession(address, { name: "coupon bench reader", role: "coupon_report" });
  const results: Result[] = [];
  try {
    await stopAutovacuum(dba);
    await fillReports(address, { coupons: reportCoupons, redemptions: Math.ceil(reportCoupons / 5) });
    await analyzeSmallTables(dba);
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

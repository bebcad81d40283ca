// Small runs of the benchmarks: each completes, gets the right answers and breaks no invariant. The measured values
// mean nothing here, because other test files run at the same time.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import { root } from "../support/copy.ts";
import type { Report, Row } from "./results.ts";

type Results = { reports: Record<string, Report> };

// The benchmarks that use tables and functions of the database.
const rates = ["floor-1", "function", "function-1", "http", "http-after-checkpoint", "fixed"];
const others = ["mint", "expire", "feed", "webhooks", "statement", "scale", "reports"];
const sizes = {
  BENCH_SECONDS: "1",
  BENCH_ROUNDS: "1",
  BENCH_COUPONS: "20000",
  BENCH_MINT: "1000,3000",
  BENCH_EXPIRE: "500",
  BENCH_EVENTS: "2000",
  BENCH_ENTRIES: "3000",
  BENCH_SCALE: "3000,9000",
  BENCH_REDEMPTIONS: "3000",
  BENCH_REPORT_COUPONS: "5000",
};

t.setTimeout(600_000);

async function runBench(t: Test, names: string[], env: NodeJS.ProcessEnv): Promise<Results["reports"]> {
  const file = path.join(t.testdir(), "results.json");
  const { stdout } = await promisify(execFile)(process.execPath, ["test/bench/run.ts", ...names], {
    cwd: root,
    env: { ...process.env, ...env, BENCH_RESULTS: file },
  });
  t.comment(stdout);
  return (JSON.parse(readFileSync(file, "utf8")) as Results).reports;
}

t.test("each of these benchmarks completes and measures something", async (t) => {
  const reports = await runBench(t, [...rates, ...others], sizes);
  const measured = Object.entries(reports).flatMap(([bench, { results }]) =>
    results.map((result) => ({ bench, ...result })),
  );
  t.strictSame(Object.keys(reports).sort(), ["rates", ...others].sort());
  t.strictSame(
    measured.filter(({ value }) => typeof value !== "number"),
    [],
    "each result is a number",
  );
  t.strictSame(
    measured.filter(({ unit, value }) => unit === "/s" && !(value > 0)),
    [],
    "each rate is positive",
  );
  checkRates(t, reports["rates"]!);
});

function checkRates(t: Test, { tables }: Report): void {
  const [shown, cpu] = Object.values(tables!) as [Row[], Row[]];
  t.strictSame(
    [shown.map(({ name }) => name).sort(), cpu.map(({ name }) => name).sort()],
    [rates.toSorted(), rates.toSorted()],
  );
  const http = cpu.find(({ name }) => name === "http")!.values;
  const groups = ["sessions", "worker's sessions", "serve", "work"];
  t.strictSame(
    groups.filter((group) => !(http[group]! > 0)),
    [],
    "each process of a redemption over HTTP is seen",
  );
  const sum = [...groups, "other postgres"].reduce((total, group) => total + http[group]!, 0);
  t.ok(Math.abs(sum - http["whole"]!) < 0.01, "the parts are the whole");
  const floor = cpu.find(({ name }) => name === "floor-1")!.values;
  t.ok(floor["sessions"]! > 0 && floor["floor's / this"] === null);
}

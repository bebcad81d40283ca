// Small runs of the benchmarks: each completes, gets the right answers and breaks no invariant. The measured values
// mean nothing here, because other test files run at the same time.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import t from "tap";
import { root } from "../support/copy.ts";

type Results = { reports: Record<string, { results: { name: string; value: number; unit: string }[] }> };

// The benchmarks that use tables and functions of the database.
const names = ["function", "http", "fixed", "mint", "expire", "feed", "webhooks", "statement", "scale", "reports"];
const sizes = {
  BENCH_SECONDS: "1",
  BENCH_ROUNDS: "1",
  BENCH_COUPONS: "20000",
  BENCH_MINT: "5000",
  BENCH_EXPIRE: "500",
  BENCH_EVENTS: "2000",
  BENCH_ENTRIES: "3000",
  BENCH_SCALE: "3000,9000",
  BENCH_REDEMPTIONS: "3000",
  BENCH_REPORT_COUPONS: "5000",
};

t.setTimeout(600_000);

t.test("each of these benchmarks completes and measures something", async (t) => {
  const file = path.join(t.testdir(), "results.json");
  const { stdout } = await promisify(execFile)(process.execPath, ["test/bench/run.ts", ...names], {
    cwd: root,
    env: { ...process.env, ...sizes, BENCH_RESULTS: file },
  });
  t.comment(stdout);
  const { reports } = JSON.parse(readFileSync(file, "utf8")) as Results;
  const measured = Object.entries(reports).flatMap(([bench, { results }]) =>
    results.map((result) => ({ bench, ...result })),
  );
  t.strictSame(Object.keys(reports).sort(), ["rates", ...names.slice(names.indexOf("fixed"))].sort());
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
});

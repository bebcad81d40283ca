// Small runs of the benchmarks: each completes, gets the right answers and breaks no invariant. The measured values
// mean nothing here, because other test files run at the same time.
import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import { root } from "../support/copy.ts";
import { readProfile } from "./callgrind.ts";
import { describeParts } from "./instruction-parts.ts";
import type { Report, Row } from "./results.ts";

type Results = { reports: Record<string, Report> };

// The benchmarks that use tables and functions of the database.
const rates = ["floor-1", "function", "function-1", "http", "http-after-checkpoint"];
const others = ["mint", "expire", "feed", "webhooks", "statement", "scale", "reports", "recovery"];
const hasValgrind = spawnSync("valgrind", ["--version"]).status === 0;
const sizes = {
  // On a busy machine, calls that wait for many others are refused after 3 s.
  BENCH_CONNECTIONS: "8",
  BENCH_SECONDS: "1",
  BENCH_ROUNDS: "1",
  BENCH_COUPONS: "8000",
  BENCH_MINT: "500,1000",
  BENCH_EXPIRE: "500",
  BENCH_EVENTS: "2000",
  BENCH_ENTRIES: "3000",
  BENCH_SCALE: "1000,3000",
  BENCH_REDEMPTIONS: "1000",
  BENCH_REPORT_COUPONS: "5000",
  BENCH_RECOVERY: "1800",
  BENCH_LOAD_SECONDS: "1",
};

t.setTimeout(1_800_000);

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
  const [recovery] = reports["recovery"]!.tables!["recovery"]!;
  t.ok(recovery!.values["redemptions"]! > 0 && recovery!.values["log to replay MiB"]! > 0, "a log was replayed");
});

function checkRates(t: Test, { tables }: Report): void {
  const [shown, cpu] = Object.values(tables!) as [Row[], Row[]];
  t.strictSame(
    [shown.map(({ name }) => name).sort(), cpu.map(({ name }) => name).sort()],
    [rates.toSorted(), rates.toSorted()],
  );
  const http = cpu.find(({ name }) => name === "http")!.values;
  const groups = ["sessions", "worker's sessions", "serve", "work"];
  // In one short round on a busy machine, a process may take less than the 10 ms that the system counts in.
  t.strictSame(
    groups.filter((group) => !cpu.some(({ name, values }) => /^http|^fixed/.test(name) && values[group]! > 0)),
    [],
    "each process of a redemption over HTTP is seen",
  );
  const sum = [...groups, "other postgres"].reduce((total, group) => total + http[group]!, 0);
  t.ok(Math.abs(sum - http["whole"]!) < 0.01, "the parts are the whole");
  const floor = cpu.find(({ name }) => name === "floor-1")!.values;
  t.ok(floor["sessions"]! > 0 && floor["floor's / this"] === null);
}

t.test("instructions are counted where valgrind is installed", { skip: !hasValgrind && "no valgrind" }, async (t) => {
  // More than one call, because a page that splits in the shorter run can outweigh what a single call writes.
  const env = { BENCH_KINDS: "alone", BENCH_COUNTED: "10", BENCH_COUPONS: "300" };
  const { instructions } = await runBench(t, ["instructions"], env);
  const [alone, ...more] = instructions!.tables!["instructions, in thousands"]!.map(({ values }) => values);
  const parts = Object.entries(alone!).filter(([name]) => name !== "all");
  t.strictSame(
    parts.filter(([, count]) => !(count! > 0 && count! < alone!["all"]!)),
    [],
    "each part is found, and is less than all",
  );
  t.strictSame([more, instructions!.results.map(({ name }) => name)], [[], ["alone"]]);
});

t.test("without valgrind, instructions says what to install and ends with exit code 1", async (t) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["test/bench/run.ts", "instructions"], {
    cwd: root,
    env: { ...process.env, PATH: "/nowhere" },
    encoding: "utf8",
  });
  t.strictSame({ status, stdout }, { status: 1, stdout: "" });
  t.match(stderr, /valgrind is missing.*apt-get install valgrind/);
});

t.test("the parts of a profile are counted once each", async (t) => {
  const profile = readProfile(profileText);
  t.equal(profile.total, 1_000);
  t.strictSame(profile.own.get("ExecutorRun"), { object: "/lib/postgres", count: 110 });
  const empty = { total: 0, own: new Map(), calls: [] };
  t.strictSame(describeParts(empty, profile, 10), {
    all: 100,
    // Called by a statement: 600. Of it, 100 are a statement; the 200 of a nested function belong to it.
    "PL/pgSQL outside statements": 50,
    triggers: 8,
    "executor start": 4,
    "function rights": 3,
    "physical writing": 2,
  });
});

const profileText = `# callgrind format
events: Ir
ob=(1) /lib/postgres
fl=(1) ???
fn=(1) ExecutorRun
0 100
+0 10
cob=(2) /lib/plpgsql.so
cfi=(1)
cfn=(2) plpgsql_call_handler'ExecInterpExpr'ExecResult
calls=1 0
0 600
cfn=(3) ExecCallTriggerFunc
calls=2 0
0 80
cfn=(4) standard_ExecutorStart
calls=2 0
* 40

ob=(2)
fn=(2)
0 300
cfn=(5) plpgsql_call_handler'2'ExecInterpExpr'exec_eval_expr'exec_stmts
calls=1 0
0 200
cob=(1)
cfn=(6) SPI_execute_plan_with_paramlist
calls=1 0
0 100

ob=(1)
fn=(3)
0 5
fn=(4)
0 5
cfn=(7) ExecCallTriggerFunc'2
calls=1 0
0 40
cfn=(8) object_aclcheck
calls=1 0
0 30
fn=(8)
0 5
cfn=(9) object_aclcheck_ext
calls=1 0
0 25
fn=(6)
0 5
cfn=(10) heap_insert
calls=1 0
0 20
totals: 1000
`;

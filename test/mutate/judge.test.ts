// Mutants that a test must notice, and some that no test can, judged in a copy of the checkout.
import { readFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { type Bench, makeBench } from "../support/bench.ts";
import { readRun } from "../support/database.ts";
import { judge } from "./judge.ts";
import { nameMutants } from "./mutant.ts";

let bench: Bench;
t.before(() => {
  const { server, template, prefix } = readRun();
  bench = makeBench(server, template, `${prefix}mutate${process.pid}`);
});
t.teardown(() => bench.close());

/** Replaces a text that the file contains once. */
function makeMutant(file: string, find: string, replacement: string) {
  const text = readFileSync(path.join(bench.place.folder, file), "utf8");
  const start = text.indexOf(find);
  if (start === -1 || text.includes(find, start + 1)) throw new Error(`${file} must contain once: ${find}`);
  return nameMutants(file, text, [{ start, end: start + find.length, replacement, operator: "test" }])[0]!;
}

async function judgeEdit(file: string, find: string, replacement: string, ...tests: string[]) {
  const mutant = makeMutant(file, find, replacement);
  const text = readFileSync(path.join(bench.place.folder, file), "utf8");
  const trials = tests.map((test) => ({ test, longestMs: 240_000 }));
  const { status, by, passed } = await judge(bench, mutant, trials);
  t.equal(readFileSync(path.join(bench.place.folder, file), "utf8"), text, "the copy is as before");
  return { status, by, passed };
}

const buckets = "test/http/token-bucket.test.ts";
const ids = "test/common/id.test.ts";

t.test("A slip in TypeScript is killed by the first test file that fails, and no other file runs", async (t) => {
  const found = await judgeEdit(
    "src/http/token-bucket.ts",
    "Math.min(",
    "Math.max(",
    ids,
    buckets,
    "test/none.test.ts",
  );
  const title = "A bucket grants its burst at once, refills at its rate, and never holds more than the burst";
  t.strictSame(found, { status: "killed", by: `${buckets}: ${title}`, passed: [ids] });
});

t.test("A slip in SQL is loaded into the databases of the tests", async (t) => {
  const found = await judgeEdit("db/code/rules/answer/format_id.sql", "0 .. 2", "0 .. 1", ids);
  const title = "SQL and TypeScript write IDs alike, and SQL reads them back";
  t.strictSame(found, { status: "killed", by: `${ids}: ${title}`, passed: [] });
});

t.test("A test file whose service does not start has noticed the slip, and ends at once", async (t) => {
  const found = await judgeEdit(
    "db/code/rules/provisioning/read_template.sql",
    "coalesce(p_template ->> 'after_reversal', 'consumed')",
    "null",
    "test/db/limits.test.ts",
  );
  t.strictSame(found, { status: "killed", by: "test/db/limits.test.ts: ", passed: [] });
});

t.test("A change that nothing notices survives all its tests", async (t) => {
  // The second one knows how many versions of the code a database has loaded.
  const tests = [ids, "test/db/tables.test.ts"];
  const found = await judgeEdit(
    "db/code/rules/answer/format_id.sql",
    "'The external form",
    "'An external form",
    ...tests,
  );
  t.strictSame(found, { status: "survived", by: "", passed: tests });
});

t.test("A change that the database refuses is invalid, and one that only tsc refuses is the compiler's", async (t) => {
  const invalid = await judgeEdit("db/code/rules/answer/format_time.sql", "p_at at", "p_no at", ids);
  t.strictSame(invalid, { status: "invalid", by: "", passed: [] });
  const refused = await judgeEdit("src/http/token-bucket.ts", "maxKept = 10_000", "maxKept: string = 10_000", buckets);
  t.strictSame(refused, { status: "compiler", by: "tsc", passed: [buckets] });
});

t.test("A test that hangs ends at its time limit, with the programs that it started", async (t) => {
  const mutant = makeMutant("src/http/token-bucket.ts", "Math.min(", "Math.max(");
  const { status, by } = await judge(bench, mutant, [{ test: "test/http/service.test.ts", longestMs: 300 }]);
  t.strictSame({ status, by }, { status: "timeout", by: "test/http/service.test.ts" });
});

// In which order the test files try a mutant, and how the verdicts are counted.
import t from "tap";
import type { FileCoverage } from "./coverage.ts";
import { equivalents } from "./equivalent.ts";
import type { Mutant } from "./mutant.ts";
import { listMutants } from "./mutants.ts";
import { type Result, findEquivalent, score } from "./results.ts";
import { compareNames, type History, makeSelector, remember } from "./select.ts";

const covered = (seconds: number, more: Partial<FileCoverage>): FileCoverage => ({
  hash: "",
  seconds,
  isGreen: true,
  functions: {},
  source: {},
  ...more,
});
const mutantOf = (file: string, object: string, start = 0): Mutant => ({
  id: "",
  line: 1,
  before: "",
  after: "",
  operator: "",
  replacement: "",
  end: start,
  file,
  object,
  start,
});
const orderOf = (coverage: Record<string, FileCoverage>, mutant: Mutant, history: History = new Map()) =>
  makeSelector(coverage)
    .order(mutant, history)
    .map(({ test, isCovering }) => `${test}${isCovering ? "" : " last"}`);

t.test("SQL: first the tests that call the function, the specific and the quick ones before the others", async (t) => {
  const coverage = {
    "slow.test.ts": covered(60, { functions: { "api.lock": 50, "api.redeem": 50 } }),
    "quick.test.ts": covered(1, { functions: { "api.lock": 50, "api.redeem": 50 } }),
    "broad.test.ts": covered(1, { functions: { "api.lock": 1, "api.redeem": 99 } }),
    "other.test.ts": covered(1, { functions: { "api.redeem": 99 } }),
    "red.test.ts": covered(1, { functions: { "api.lock": 100 }, isGreen: false }),
  };
  const mutant = mutantOf("db/code/api/lock.sql", "api.lock");
  t.strictSame(orderOf(coverage, mutant), ["quick.test.ts", "broad.test.ts", "slow.test.ts", "other.test.ts last"]);
  const history: History = new Map();
  const other = mutantOf("db/code/api/redeem.sql", "api.redeem");
  for (let n = 0; n < 30; n += 1)
    for (const test of ["quick.test.ts", "broad.test.ts"]) {
      remember(history, mutant, test, test === "broad.test.ts");
      remember(history, other, test, test === "quick.test.ts");
    }
  t.equal(orderOf(coverage, mutant, history)[0], "broad.test.ts", "what noticed mutants of the file comes first");
});

t.test("A test that bears the name of the changed file comes before quicker ones", async (t) => {
  const functions = { "jobs.prune_feed": 1, "api.lock": 99 };
  const coverage = {
    "test/db/quick.test.ts": covered(2, { functions }),
    "test/worker/tasks/prune.test.ts": covered(8, { functions }),
    "test/worker/tasks/long.test.ts": covered(8, { functions }),
  };
  const order = orderOf(coverage, mutantOf("db/code/jobs/prune_feed.sql", "jobs.prune_feed"));
  t.strictSame(order, ["test/worker/tasks/prune.test.ts", "test/db/quick.test.ts", "test/worker/tasks/long.test.ts"]);
  t.equal(compareNames("db/code/rules/invariant/feed_positions_are_1_to_n.sql", "test/db/invariants.test.ts"), 1);
  t.equal(compareNames("src/http/read-call.ts", "test/http/read-body.test.ts"), 0.5);
  t.equal(compareNames("src/http/read-call.ts", "test/http/flood.test.ts"), 0);
});

t.test("A view is tried by the tests that name it, then by those that call what uses it", async (t) => {
  const coverage = {
    "test/db/roles.test.ts": covered(1, {}),
    "test/db/invariants.test.ts": covered(1, {}),
  };
  const law = mutantOf("db/code/rules/invariant/feed_positions_are_1_to_n.sql", "rules.feed_positions_are_1_to_n");
  t.equal(orderOf(coverage, law)[0], "test/db/invariants.test.ts");
});

t.test("TypeScript: only a test that runs the changed place covers it", async (t) => {
  const coverage = {
    "beside.test.ts": covered(1, { source: { "src/a.ts": [[0, 10]] } }),
    "inside.test.ts": covered(9, { source: { "src/a.ts": [[0, 10], [20, 30]] } }), // prettier-ignore
  };
  t.strictSame(orderOf(coverage, mutantOf("src/a.ts", "", 20)), ["inside.test.ts", "beside.test.ts last"]);
  t.strictSame(orderOf(coverage, mutantOf("src/a.ts", "", 10)), ["beside.test.ts last", "inside.test.ts last"]);
});

t.test("The score counts each folder, without invalid mutants", async (t) => {
  const result = (file: string, status: Result["status"]): Result => ({
    id: "",
    by: "",
    passed: [],
    seconds: 1,
    file,
    status,
  });
  const results = [
    result("db/code/api/lock.sql", "killed"),
    result("db/code/api/void.sql", "timeout"),
    result("db/code/api/void.sql", "survived"),
    result("db/code/api/void.sql", "invalid"),
    result("src/http/app.ts", "compiler"),
  ];
  t.strictSame(score(results), [
    "db/code/api           66.7 %  2 of 3, 1 by a time-out",
    "src/http             100.0 %  1 of 1",
    "all                   75.0 %  3 of 4, 1 by a time-out",
  ]);
});

t.test("Each equivalent mutant exists, and has a reason", async (t) => {
  const files = [...new Set(equivalents.map(({ file }) => file))];
  const mutants = files.flatMap((file) => listMutants([file]));
  const found = new Set(mutants.map((mutant) => findEquivalent(mutant, equivalents)));
  t.strictSame(
    equivalents.filter((one) => !found.has(one) || one.reason === ""),
    [],
  );
});

// Makes one small slip at a time in a copy of the checkout, and runs the tests that run the changed code until one
// notices, the likely ones first: see select.ts. Prints each mutant that survives, and at the end the share that was
// noticed.
//
// The order of the mutants follows from the seed. A run continues where the last one ended. Mutants in equivalent.ts
// are left out.
import { defineCommand } from "../../src/common/command.ts";
import { runCommand } from "../../src/common/run-command.ts";
import { type Bench, share, withBenches } from "../support/bench.ts";
import { dropDatabases } from "../support/database.ts";
import { type Coverage, hashOf, listTestFiles, measure, readCoverage, writeCoverage } from "./coverage.ts";
import { equivalents } from "./equivalent.ts";
import { compiles, judge, type Trial } from "./judge.ts";
import { type Mutant, shuffle } from "./mutant.ts";
import { listMutants } from "./mutants.ts";
import { type Result, describe, findEquivalent, isNoticed, readResults, score, writeResult } from "./results.ts";
import { type History, type Selector, makeSelector, remember } from "./select.ts";

interface Options {
  seed: string;
  count: number;
  deadline: number;
  only: string[];
  patience: number;
  benches: number | undefined;
  rest: boolean;
  survivors: boolean;
  measure: boolean;
}

/** Measures the test files that are new or changed, or all. */
async function updateCoverage(benches: Bench[], mustMeasure: boolean): Promise<Coverage> {
  const known = mustMeasure ? {} : readCoverage();
  const files = listTestFiles();
  const coverage: Coverage = Object.fromEntries(
    files
      .filter((file) => known[file]?.isGreen && known[file].hash === hashOf(file))
      .map((file) => [file, known[file]!]),
  );
  const missing = files.filter((file) => coverage[file] === undefined);
  if (missing.length > 0) console.log(`measuring what ${missing.length} test files run`);
  await share(benches, missing, async (bench, file) => {
    coverage[file] = await measure(bench.place, file);
    await dropDatabases(bench.place.server, bench.place.prefix);
    writeCoverage(coverage);
  });
  const red = files.filter((file) => !coverage[file]!.isGreen);
  if (red.length > 0) console.log(`not used, because they fail without a mutant: ${red.join(", ")}`);
  return coverage;
}

interface Plan {
  options: Options;
  /** Whether an earlier run has tried this test, as it is now. */
  isTried: (mutant: Mutant, test: string) => boolean;
  selector: Selector;
  history: History;
  coverage: Coverage;
}

/** The tests for one mutant. A hanging test is stopped long after it usually ends. */
function listTrials(mutant: Mutant, { options, isTried, selector, history, coverage }: Plan): Trial[] {
  let left = options.patience;
  const choices = selector.order(mutant, history);
  // No trace shows who reads a view.
  const isUntraced = !choices.some(({ isCovering }) => isCovering);
  return choices.flatMap(({ test, isCovering }) => {
    const { seconds } = coverage[test]!;
    if (seconds > left || isTried(mutant, test) || !(isCovering || isUntraced || options.rest)) return [];
    left -= seconds;
    return [{ test, longestMs: 1000 * (20 + 5 * seconds) }];
  });
}

function learn(history: History, mutant: Mutant, { passed, by, status }: Result): void {
  for (const test of passed) remember(history, mutant, test, false);
  if (status === "killed" || status === "timeout") remember(history, mutant, by.split(": ")[0]!, true);
}

function choose(mutants: Mutant[], results: Map<string, Result>, { seed, count, survivors }: Options): Mutant[] {
  const sample = shuffle(mutants, seed).slice(0, count);
  return sample.filter(({ id }) => (survivors ? results.get(id)?.status === "survived" : !results.has(id)));
}

async function run(options: Options, benches: Bench[]): Promise<void> {
  const results = readResults();
  const all = listMutants(options.only).filter((mutant) => findEquivalent(mutant, equivalents) === undefined);
  const coverage = await updateCoverage(benches, options.measure);
  for (const { place } of benches)
    if (!(await compiles(place.folder))) throw new Error("tsc refuses the unchanged code: run npm run check");
  const isTried = ({ id }: Mutant, test: string) => results.get(id)?.tried?.[test] === coverage[test]!.hash;
  const plan: Plan = { options, isTried, selector: makeSelector(coverage), history: new Map(), coverage };
  for (const mutant of all) {
    const result = results.get(mutant.id);
    if (result !== undefined) learn(plan.history, mutant, result);
  }
  const chosen = choose(all, results, options);
  console.log(`${all.length} mutants, ${chosen.length} to judge`);
  const judgeNext = async (bench: Bench, mutant: Mutant): Promise<void> => {
    const verdict = await judge(bench, mutant, listTrials(mutant, plan));
    const tried = { ...results.get(mutant.id)?.tried };
    for (const test of verdict.passed) tried[test] = coverage[test]!.hash;
    const result: Result = { id: mutant.id, file: mutant.file, ...verdict, tried };
    writeResult(result);
    results.set(mutant.id, result);
    learn(plan.history, mutant, result);
    if (result.status === "survived") console.log(describe(mutant, { ...result, passed: Object.keys(tried) }));
    if (result.status === "timeout")
      console.log(`TIME-OUT ${mutant.file}:${mutant.line} ${mutant.after}: ${result.by}`);
  };
  await share(benches, chosen, judgeNext, () => performance.now() >= options.deadline);
  const sample = shuffle(all, options.seed).slice(0, options.count);
  const judged = sample.map(({ id }) => results.get(id)).filter((result) => result !== undefined);
  console.log(score(judged).join("\n"));
  const noticed = judged.filter((result) => isNoticed(result));
  const seconds = noticed.reduce((sum, result) => sum + result.seconds, 0) / Math.max(noticed.length, 1);
  console.log(`${seconds.toFixed(1)} s for each mutant that was noticed`);
}

async function mutate(options: Options): Promise<void> {
  // Ends after the mutants that are being judged.
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => (options.deadline = 0));
  await withBenches("coupon-mutate-", (benches) => run(options, benches), options.benches);
  process.exit(0);
}

const command = defineCommand({
  name: "mutate",
  about:
    "Makes one small slip at a time in a copy of the checkout, and reports those that no test notices. A run with " +
    "the same seed continues where the last one ended.",
  words: {
    path: { about: "judges only files whose path begins with one of these", isOptional: true, isRepeated: true },
  },
  flags: {
    seed: { type: "count", value: "N", default: 1, about: "decides the order of the mutants" },
    count: { type: "count", value: "N", about: "ends after this many mutants; all if absent" },
    minutes: { type: "count", value: "M", about: "ends after this time; no limit if absent" },
    patience: {
      type: "count",
      value: "SECONDS",
      default: 120,
      about: "how long the tests of one mutant may take by their usual times",
    },
    benches: {
      type: "count",
      value: "N",
      about: "how many mutants are tried at once; as many as cores if absent. Tests often wait: try two per core",
    },
    rest: { type: "switch", about: "lets survivors meet all other tests too" },
    measure: {
      type: "switch",
      about: "measures again what each test file runs: do so after larger changes of the code",
    },
    survivors: {
      type: "switch",
      about: "judges those again that have survived, by tests that are new, changed or not tried yet",
    },
  },
  examples: ["db/code/api --seed 20261122 --minutes 30"],
  run: ({ words, flags: { seed, count = Infinity, minutes = Infinity, ...flags } }) =>
    mutate({
      ...flags,
      seed: String(seed),
      count,
      deadline: performance.now() + minutes * 60_000,
      only: words.path ?? [],
    }),
});

await runCommand("npm run mutate", command);

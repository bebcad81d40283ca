// `npm run mutate`, see README.md.
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { defineCommand } from "../../../src/command-line/command.ts";
import { runCommand } from "../../../src/command-line/run-command.ts";
import { applyEdits, root } from "../../support/copy.ts";
import { type Site, share, withSites } from "./sites.ts";
import { placeOf, readBreaks } from "./breaks.ts";
import { type Coverage, updateCoverage } from "./coverage.ts";
import { compiles, judge, readResults, score, type Trial, writeResult } from "./judge.ts";
import { listFiles, listMutants, type Mutant, readText, shuffle } from "./mutant.ts";
import { type History, type Place, learn, makeSelector } from "./select.ts";

interface Options {
  words: string[];
  seed: string;
  count: number;
  deadline: number;
  ids: string | undefined;
  patience: number;
  survivors: boolean;
}

/** Finds the tests for a change. A hanging test is stopped long after it usually ends. */
function planTrials({ patience }: Options, coverage: Coverage, history: History) {
  const order = makeSelector(coverage);
  return (place: Place, isTried = (_test: string) => false): Trial[] => {
    let left = patience;
    const choices = order(place, history);
    // No trace shows who reads a view.
    const isUntraced = !choices.some(({ isCovering }) => isCovering);
    return choices.flatMap(({ test, isCovering }) => {
      const { seconds } = coverage[test]!;
      if (seconds > left || isTried(test) || !(isCovering || isUntraced)) return [];
      left -= seconds;
      return [{ test, longestMs: 1000 * (20 + 5 * seconds) }];
    });
  };
}

/** The mutants to look at, in their order. */
function takeSample(all: Mutant[], { ids, seed, count }: Options): Mutant[] {
  const left = all.filter(({ isEquivalent }) => !isEquivalent);
  if (ids === undefined) return shuffle(left, seed).slice(0, count);
  const wanted = new Set(readFileSync(ids, "utf8").split(/\s+/).filter(Boolean));
  const known = new Map(all.map((mutant) => [mutant.id, mutant]));
  for (const id of wanted) {
    const mutant = known.get(id);
    if (mutant === undefined) console.log(`${id} no longer exists`);
    else if (mutant.isEquivalent) console.log(`${id} is equivalent by now: ${mutant.file}:${mutant.line}`);
  }
  return shuffle(left, seed).filter(({ id }) => wanted.has(id));
}

async function judgeMutants(options: Options, sites: Site[]): Promise<void> {
  const results = readResults();
  const history: History = new Map();
  const all = listMutants(listFiles(options.words));
  const sample = takeSample(all, options);
  const coverage = await updateCoverage(sites);
  for (const { folder } of sites)
    if (!(await compiles(folder))) throw new Error("tsc refuses the unchanged code: run npm run check");
  for (const mutant of all) learn(history, mutant, results.get(mutant.id));
  const listTrials = planTrials(options, coverage, history);
  const judgeNext = async (site: Site, mutant: Mutant): Promise<void> => {
    const { id, file, line, operator, start, end, replacement, before, after } = mutant;
    const tried = { ...results.get(id)?.tried };
    const trials = listTrials(mutant, (test) => tried[test] === coverage[test]!.hash);
    const text = readText(file);
    const changed = text.slice(0, start) + replacement + text.slice(end);
    const verdict = await judge(site, new Map([[file, changed]]), trials);
    for (const test of verdict.passed) tried[test] = coverage[test]!.hash;
    const result = { id, file, ...verdict, tried };
    writeResult(result);
    results.set(id, result);
    learn(history, mutant, result);
    const where = `${file}:${line} (${operator}, ${id})`;
    const change = `${before.replace(/^/gm, "  - ")}\n${after.replace(/^/gm, "  + ")}`;
    if (verdict.status === "timeout") console.log(`TIME-OUT ${where}: ${verdict.by}\n${change}`);
    if (verdict.status !== "survived") return;
    const tests = Object.keys(tried);
    console.log(`SURVIVED ${where}, ${tests.length} test files\n${change}\n  tests: ${tests.slice(0, 6).join(" ")}`);
  };
  const isOpen = (id: string) => (options.survivors ? results.get(id)?.status === "survived" : !results.has(id));
  const chosen = sample.filter(({ id }) => isOpen(id));
  console.log(`${all.length} mutants, ${chosen.length} to judge`);
  await share(sites, chosen, judgeNext, () => performance.now() >= options.deadline);
  console.log(score(sample.flatMap(({ id }) => results.get(id) ?? [])));
}

/** Each break must be noticed, by its own test or by those that run the first place that it changes. */
async function tryBreaks(options: Options, sites: Site[]): Promise<boolean> {
  const breaks = readBreaks(options.words);
  const coverage = breaks.every(({ test }) => test !== undefined) ? {} : await updateCoverage(sites);
  const listTrials = planTrials({ ...options, patience: 5 * options.patience }, coverage, new Map());
  let missed = 0;
  await share(sites, breaks, async (site, { name, edits, test }) => {
    const trials = test === undefined ? listTrials(placeOf(edits[0]!)) : [{ test, longestMs: 300_000 }];
    const texts = applyEdits(root, edits);
    let { status, by } = await judge(site, texts, trials);
    // Once more: it may have failed by chance.
    const last = trials.filter((trial) => by.startsWith(trial.test));
    if (status === "killed") ({ status, by } = await judge(site, texts, last));
    if (status !== "killed") missed += 1;
    console.log(`${name}: ${status === "killed" ? by : `NOT NOTICED by ${trials.length} test files (${status})`}`);
  });
  console.log(`${breaks.length} breaks, ${missed} not noticed`);
  return missed === 0;
}

const command = defineCommand({
  name: "mutate",
  about:
    "Makes one small slip at a time in a copy of the checkout, and reports those that no test notices. A run with " +
    "the same seed continues where the last one ended.",
  words: {
    path: {
      about: "the beginning of the paths of files to change; with --breaks, a word in the name of a break",
      isOptional: true,
      isRepeated: true,
    },
  },
  flags: {
    seed: { type: "count", value: "N", default: 1, about: "decides the order of the mutants" },
    count: { type: "count", value: "N", about: "ends after this many mutants; all if absent" },
    minutes: { type: "count", value: "M", about: "ends after this time; no limit if absent" },
    ids: { type: "text", value: "FILE", about: "looks only at the mutants whose IDs the file lists" },
    breaks: { type: "switch", about: "makes the breaks of breaks.txt instead" },
    patience: { type: "count", value: "SECONDS", default: 120, about: "how long the tests of a mutant usually take" },
    sites: { type: "count", value: "N", default: availableParallelism(), about: "how many are tried at once" },
    survivors: { type: "switch", about: "judges those that survived again, by tests that are new or not tried yet" },
  },
  examples: ["db/code/api --seed 20261122 --minutes 30", "--breaks lease"],
  exitCodes: "0 all is judged, 1 a break was not noticed, or the tool failed",
  async run({ words, flags: { seed, count = Infinity, minutes = Infinity, sites: siteCount, breaks, ...flags } }) {
    const deadline = performance.now() + minutes * 60_000;
    const options: Options = { ...flags, words: words.path ?? [""], seed: String(seed), count, deadline };
    // Ends after the mutants that are being judged.
    for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => (options.deadline = 0));
    let isNoticed = true;
    await withSites(siteCount, async (sites) => {
      if (breaks) isNoticed = await tryBreaks(options, sites);
      else await judgeMutants(options, sites);
    });
    process.exit(isNoticed ? 0 : 1);
  },
});

await runCommand("npm run mutate", command);

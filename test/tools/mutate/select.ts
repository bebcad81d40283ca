// Chooses the order in which test files try a mutant: those that run the changed code first, and of these the ones
// that are quick and likely to notice.
import { globSync } from "node:fs";
import path from "node:path";
import { listCode } from "../../../src/migration/db-files.ts";
import { root } from "../../support/copy.ts";
import type { Coverage, FileCoverage } from "./coverage.ts";
import type { Verdict } from "./judge.ts";
import { type Mutant, readText } from "./mutant.ts";

/** Where code is changed. */
export type Place = Pick<Mutant, "file" | "start" | "object">;

/** How often a test file noticed the mutants that it tried: those of each file, and all. */
export type History = Map<string, { runs: number; kills: number }>;

export function learn(history: History, place: Place, result: Pick<Verdict, "status" | "by" | "passed"> | undefined) {
  const remember = (test: string, kill: number): void => {
    for (const key of [`${place.file} ${test}`, test]) {
      const { runs, kills } = history.get(key) ?? { runs: 0, kills: 0 };
      history.set(key, { runs: runs + 1, kills: kills + kill });
    }
  };
  for (const test of result?.passed ?? []) remember(test, 0);
  if (result?.status === "killed" || result?.status === "timeout") remember(result.by.split(": ")[0]!, 1);
}

/** Returns what orders the tests for a place. */
export function makeSelector(coverage: Coverage) {
  const mentions = readMentions();
  const green = Object.entries(coverage).filter(([, { isGreen }]) => isGreen);
  return (place: Place, history: History): { test: string; isCovering: boolean }[] => {
    const weigh = (test: string, covered: FileCoverage): number =>
      place.file.endsWith(".ts") ? weighSource(place, covered) : weighDatabase([place.object], test, covered, mentions);
    // A test that compares db/tables.sql with the migrations notices every change, but no slip: both would change.
    const isCopy = (test: string) => place.file.includes("migrations") && mentions.tests.get(test)?.has("tables.sql");
    const rated = green
      .filter(([test]) => !isCopy(test))
      .map(([test, covered]) => ({ test, covered, weight: weigh(test, covered) }));
    const most = Math.max(...rated.map(({ weight }) => weight), Number.MIN_VALUE);
    return rated
      .map(({ test, covered: { seconds }, weight }) => {
        const { runs, kills } = history.get(`${place.file} ${test}`) ?? { runs: 0, kills: 0 };
        const general = history.get(test) ?? { runs: 0, kills: 0 };
        const usual = (0.6 * weight) / most + (general.kills + 1) / (general.runs + 10);
        const expected = (0.02 + usual + compareNames(place.file, test)) / 3;
        const likely = (kills + 3 * expected) / (runs + 3);
        // Not likely / seconds: quick tests of everything notice what one of them does, and would all come first.
        return { test, isCovering: weight > 0, rate: likely / Math.sqrt(seconds + 0.5) };
      })
      .sort((a, b) => Number(b.isCovering) - Number(a.isCovering) || b.rate - a.rate);
  };
}

/** The share of the words in a test's name that the changed file has too: prune.test.ts is about prune_feed.sql. */
function compareNames(file: string, test: string): number {
  const wordsOf = (name: string): string[] => (name.match(/[a-z]+/g) ?? []).map((word) => word.replace(/s$/, ""));
  const known = new Set(wordsOf(file));
  const words = wordsOf(path.basename(test, ".test.ts"));
  return words.filter((word) => known.has(word)).length / words.length;
}

/** The share of the changed file in all code that the test runs. */
function weighSource({ file, start }: Place, { source }: FileCoverage): number {
  const isRun = source[file]?.some(([from, to]) => from <= start && start < to) ?? false;
  if (!isRun) return 0;
  const sizes = Object.values(source).map((ranges) => ranges.reduce((sum, [from, to]) => sum + to - from, 0));
  return 1 / sizes.reduce((sum, size) => sum + size, 0);
}

/** The share of the function in all calls that the test makes, or that of the code that uses the function or view. */
function weighDatabase(chain: string[], test: string, covered: FileCoverage, mentions: Mentions): number {
  const name = chain[0]!;
  const total = Object.values(covered.functions).reduce((sum, count) => sum + count, 0);
  if (covered.functions[name] !== undefined) return covered.functions[name] / total;
  if (mentions.counted.has(name)) return 0;
  if (mentions.tests.get(test)?.has(name)) return 1;
  const users = [...mentions.code].filter(([user, used]) => !chain.includes(user) && used.has(name));
  return Math.max(0, ...users.map(([user]) => 0.1 * weighDatabase([user, ...chain], test, covered, mentions)));
}

interface Mentions {
  /** Functions of which every call is counted. PostgreSQL may inline those in SQL, and does inline views. */
  counted: Set<string>;
  /** For each test file: what it and its imports name, functions, views, tables and rules among them. */
  tests: Map<string, Set<string>>;
  /** For each function and view: what it names. */
  code: Map<string, Set<string>>;
}

function readMentions(): Mentions {
  const code = listCode().map((file) => ({ ...file, name: `${file.schema}.${file.name}` }));
  const find = (text: string): Set<string> => {
    const words = new Set([...(text.match(/\b[a-z]+\.\w+/g) ?? []), ...(text.match(/\w+/g) ?? [])]);
    // An invariant is named by its sentence, and a report without its schema.
    const isNamed = (bare: string): boolean =>
      [bare, bare.replaceAll("_", " ")].some((quoted) => text.includes(`"${quoted}"`));
    const namesEveryReport = text.includes("report.${");
    for (const { schema, name } of code) {
      const bare = name.slice(schema.length + 1);
      if ((bare.includes("_") && isNamed(bare)) || (namesEveryReport && schema === "report")) words.add(name);
    }
    return words;
  };
  const files = globSync("test/**/*.ts", { cwd: root });
  const texts = new Map(files.map((file) => [file, readText(file)]));
  const own = new Map([...texts].map(([file, text]) => [file, find(text)]));
  const gather = (file: string, seen: Set<string>): string[] => {
    const text = texts.get(file);
    if (text === undefined || seen.has(file)) return [];
    seen.add(file);
    const imports = [...text.matchAll(/ from "(\.[^"]+)"/g)].map(([, from]) => path.join(path.dirname(file), from!));
    return [...own.get(file)!, ...imports.flatMap((target) => gather(target, seen))];
  };
  const tests = files.filter((file) => file.endsWith(".test.ts"));
  return {
    counted: new Set(code.filter(({ text }) => text.includes("language plpgsql")).map(({ name }) => name)),
    tests: new Map(tests.map((file) => [file, new Set(gather(file, new Set()))])),
    code: new Map(code.map(({ name, text }) => [name, find(text)])),
  };
}

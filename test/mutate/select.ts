// Chooses the order in which test files try a mutant: those that run the changed code first, and of these the ones
// that are quick and likely to notice.
import path from "node:path";
import { listCode } from "../../src/migration/db-files.ts";
import { readImports } from "../support/project-rules/imports.ts";
import { readFiles } from "../support/project-rules/source-file.ts";
import type { Coverage, FileCoverage } from "./coverage.ts";
import type { Mutant } from "./mutant.ts";

/** How often a test file noticed the mutants that it tried: those of each file, and all. */
export type History = Map<string, { runs: number; kills: number }>;

const keyOf = (mutant: { file: string }, test: string): string => `${mutant.file} ${test}`;

export function remember(history: History, mutant: { file: string }, test: string, isKill: boolean): void {
  for (const key of [keyOf(mutant, test), test]) {
    const { runs, kills } = history.get(key) ?? { runs: 0, kills: 0 };
    history.set(key, { runs: runs + 1, kills: kills + Number(isKill) });
  }
}

export interface Choice {
  test: string;
  isCovering: boolean;
}

export interface Selector {
  order(mutant: Mutant, history: History): Choice[];
}

export function makeSelector(coverage: Coverage): Selector {
  const names = listCode().map(({ schema, name }) => `${schema}.${name}`);
  const mentions = readMentions(names);
  const green = Object.entries(coverage).filter(([, { isGreen }]) => isGreen);
  const weigh = (mutant: Mutant, test: string, covered: FileCoverage): number =>
    mutant.file.startsWith("src/")
      ? weighSource(mutant, covered)
      : weighDatabase(mutant.object, test, covered, { mentions, coverage });
  return {
    order(mutant, history) {
      const rated = green.map(([test, covered]) => ({ test, covered, weight: weigh(mutant, test, covered) }));
      const most = Math.max(...rated.map(({ weight }) => weight), Number.MIN_VALUE);
      return rated
        .map(({ test, covered: { seconds }, weight }) => {
          const { runs, kills } = history.get(keyOf(mutant, test)) ?? { runs: 0, kills: 0 };
          const general = history.get(test) ?? { runs: 0, kills: 0 };
          const usual = (0.6 * weight) / most + (general.kills + 1) / (general.runs + 10);
          const expected = (0.02 + usual + compareNames(mutant.file, test)) / 3;
          const likely = (kills + 3 * expected) / (runs + 3);
          // Not likely / seconds: quick tests of everything notice what one of them does, and would all come first.
          return { test, isCovering: weight > 0, rate: likely / Math.sqrt(seconds + 0.5) };
        })
        .sort((a, b) => Number(b.isCovering) - Number(a.isCovering) || b.rate - a.rate)
        .map(({ test, isCovering }) => ({ test, isCovering }));
    },
  };
}

/** The share of the words in a test's name that the changed file has too: prune.test.ts is about prune_feed.sql. */
export function compareNames(file: string, test: string): number {
  const wordsOf = (name: string): string[] => (name.match(/[a-z]+/g) ?? []).map((word) => word.replace(/s$/, ""));
  const known = new Set(wordsOf(file));
  const words = wordsOf(path.basename(test, ".test.ts"));
  return words.filter((word) => known.has(word)).length / words.length;
}

/** The share of the changed file in all code that the test runs. */
function weighSource({ file, start }: Mutant, { source }: FileCoverage): number {
  const isRun = source[file]?.some(([from, to]) => from <= start && start < to) ?? false;
  if (!isRun) return 0;
  const sizes = Object.values(source).map((ranges) => ranges.reduce((sum, [from, to]) => sum + to - from, 0));
  return 1 / sizes.reduce((sum, size) => sum + size, 0);
}

interface Known {
  mentions: Mentions;
  coverage: Coverage;
}

/** The share of the function in all calls that the test makes, or that of the code that uses the function or view. */
function weighDatabase(
  name: string,
  test: string,
  covered: FileCoverage,
  known: Known,
  seen = new Set<string>(),
): number {
  seen.add(name);
  const calls = covered.functions[name];
  const total = Object.values(covered.functions).reduce((sum, count) => sum + count, 0);
  if (calls !== undefined) return calls / total;
  if (known.mentions.counted.has(name)) return 0;
  if (known.mentions.tests.get(test)?.has(name)) return 1;
  const users = [...known.mentions.code].filter(([user, used]) => !seen.has(user) && used.has(name));
  return Math.max(0, ...users.map(([user]) => 0.1 * weighDatabase(user, test, covered, known, seen)));
}

interface Mentions {
  /** Functions of which every call is counted. PostgreSQL may inline those in SQL, and does inline views. */
  counted: Set<string>;
  /** For each test file: the functions and views that it or its imports name. */
  tests: Map<string, Set<string>>;
  /** For each function and view: those that it names. */
  code: Map<string, Set<string>>;
}

function readMentions(names: string[]): Mentions {
  const find = (text: string): Set<string> => {
    const words = new Set(text.match(/\b[a-z]+\.\w+/g));
    // An invariant is named by its sentence, and a report without its schema.
    const isNamed = (bare: string): boolean =>
      bare.includes("_") && [bare, bare.replaceAll("_", " ")].some((quoted) => text.includes(`"${quoted}"`));
    const namesEveryReport = text.includes("report.${");
    return new Set(
      names.filter(
        (name) => words.has(name) || isNamed(name.split(".")[1]!) || (namesEveryReport && name.startsWith("report.")),
      ),
    );
  };
  const files = new Map(readFiles("test", ".ts").map((file) => [file.path, file]));
  const own = new Map([...files].map(([file, { text }]) => [file, find(text)]));
  const imports = new Map([...files].map(([name, file]) => [name, readImports(file).map(({ target }) => target)]));
  const gather = (file: string, seen: Set<string>): string[] => {
    if (seen.has(file)) return [];
    seen.add(file);
    return [...(own.get(file) ?? []), ...(imports.get(file) ?? []).flatMap((target) => gather(target, seen))];
  };
  const tests = [...files.keys()].filter((file) => file.endsWith(".test.ts"));
  const code = listCode().map((file) => ({ ...file, name: `${file.schema}.${file.name}` }));
  return {
    counted: new Set(code.filter(({ text }) => text.includes("language plpgsql")).map(({ name }) => name)),
    tests: new Map(tests.map((file) => [file, new Set(gather(file, new Set()))])),
    code: new Map(code.map(({ name, text }) => [name, find(text)])),
  };
}

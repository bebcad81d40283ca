// The verdicts of all runs, one JSON line each. A later line about the same mutant replaces the earlier one.
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { cacheFolder } from "./coverage.ts";
import type { Equivalent } from "./equivalent.ts";
import type { Verdict } from "./judge.ts";
import type { Mutant } from "./mutant.ts";

export interface Result extends Verdict {
  id: string;
  file: string;
  /** The tests that passed in this run or an earlier one, and the hashes of their files. */
  tried?: Record<string, string>;
}

const resultsFile = path.join(cacheFolder, "results.jsonl");

export function readResults(file = resultsFile): Map<string, Result> {
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
  return new Map(lines.map((line) => JSON.parse(line) as Result).map((result) => [result.id, result]));
}

export function writeResult(result: Result, file = resultsFile): void {
  mkdirSync(path.dirname(file), { recursive: true });
  appendFileSync(file, `${JSON.stringify(result)}\n`);
}

export const isNoticed = ({ status }: Verdict): boolean => ["killed", "timeout", "compiler"].includes(status);

export const findEquivalent = (mutant: Mutant, list: Equivalent[]): Equivalent | undefined =>
  list.find(({ file, before, after }) => file === mutant.file && before === mutant.before && after === mutant.after);

/** `db/code/api`, `src/http`, `src/start.ts`. */
export const folderOf = (file: string): string =>
  file
    .split("/")
    .slice(0, file.startsWith("db/code/") ? 3 : 2)
    .join("/");

/** One line for each folder: how many of the judged mutants were noticed. Invalid and equivalent ones do not count. */
export function score(results: Result[]): string[] {
  const judged = results.filter(({ status }) => status !== "invalid");
  const folders = [...new Set(judged.map(({ file }) => folderOf(file)))].sort();
  const line = (name: string, those: Result[]): string => {
    const noticed = those.filter(isNoticed).length;
    const late = those.filter(({ status }) => status === "timeout").length;
    const percent = those.length === 0 ? "-" : ((100 * noticed) / those.length).toFixed(1);
    const suffix = late > 0 ? `, ${late} by a time-out` : "";
    return `${name.padEnd(20)} ${percent.padStart(5)} %  ${noticed} of ${those.length}${suffix}`;
  };
  return [
    ...folders.map((folder) =>
      line(
        folder,
        judged.filter(({ file }) => folderOf(file) === folder),
      ),
    ),
    line("all", judged),
  ];
}

export function describe({ file, line, operator, before, after }: Mutant, { passed, seconds }: Verdict): string {
  const mark = (sign: string, text: string): string => text.replace(/^/gm, `  ${sign} `);
  return [
    `SURVIVED ${file}:${line} (${operator}), after ${passed.length} test files in ${Math.round(seconds)} s`,
    mark("-", before),
    mark("+", after),
    `  tests: ${passed.slice(0, 6).join(" ")}${passed.length > 6 ? ` and ${passed.length - 6} more` : ""}`,
  ].join("\n");
}

// Which code each test file runs: the functions of its databases (track_functions), and the parts of src that V8 has
// run, in the test and in the programs that it starts. The map is kept between runs. A test file is measured again
// when its text has changed. After larger changes of the code the map is old, and a survivor may not meet the test that
// would notice: --measure makes a new one.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { readFiles } from "../support/project-rules/source-file.ts";
import { root } from "../support/copy.ts";
import { type Place, runFile } from "../support/run-file.ts";
import { makeTemporaryFolder, removeFolder } from "../support/temporary-folder.ts";
import { digest } from "./mutant.ts";

/** From (inclusive) and to (exclusive), in order. */
export type Ranges = [number, number][];

export interface FileCoverage {
  hash: string;
  seconds: number;
  isGreen: boolean;
  /** Calls of each function of the database. */
  functions: Record<string, number>;
  /** The parts of each file of src that ran. */
  source: Record<string, Ranges>;
}

export type Coverage = Record<string, FileCoverage>;

export const cacheFolder = path.join(root, "node_modules/.cache/mutate");
const cacheFile = path.join(cacheFolder, "coverage.json");

// They test other tools, or compare texts of the checkout.
const leftOut = ["test/tools/bench/", "test/chaos/", "test/mutate/", "test/sabotage/", "test/support/"];

export const listTestFiles = (): string[] =>
  readFiles("test", ".test.ts")
    .map(({ path: file }) => file)
    .filter((file) => !leftOut.some((folder) => file.startsWith(folder)));

export function readCoverage(): Coverage {
  try {
    return JSON.parse(readFileSync(cacheFile, "utf8")) as Coverage;
  } catch {
    return {};
  }
}

export function writeCoverage(coverage: Coverage): void {
  mkdirSync(cacheFolder, { recursive: true });
  writeFileSync(cacheFile, JSON.stringify(coverage));
}

export const hashOf = (file: string): string => digest(readFileSync(path.join(root, file), "utf8"));

/** `place` holds the unchanged code. */
export async function measure(place: Place, file: string): Promise<FileCoverage> {
  const folder = makeTemporaryFolder("coupon-coverage-");
  const trace = path.join(folder, "functions");
  writeFileSync(trace, "");
  const v8 = path.join(folder, "v8");
  try {
    const run = await runFile(place, file, {
      longestMs: 300_000,
      env: { NODE_V8_COVERAGE: v8, COUPON_TEST_TRACE: trace },
    });
    return {
      hash: hashOf(file),
      seconds: Math.round(run.seconds * 10) / 10,
      isGreen: run.verdict === "green",
      functions: readTrace(readFileSync(trace, "utf8")),
      source: readV8(v8, place.folder),
    };
  } finally {
    removeFolder(folder);
  }
}

/** Lines of name and calls, as test/support/database.ts writes them. */
function readTrace(text: string): Record<string, number> {
  const calls: Record<string, number> = {};
  for (const [, name, count] of text.matchAll(/^(\S+) (\d+)$/gm)) calls[name!] = (calls[name!] ?? 0) + Number(count);
  return calls;
}

interface Script {
  url: string;
  functions: { ranges: { startOffset: number; endOffset: number; count: number }[] }[];
}

function readV8(folder: string, checkout: string): Record<string, Ranges> {
  const base = `file://${checkout}/`;
  const painted = new Map<string, Uint8Array>();
  for (const name of listIfAny(folder)) {
    const { result } = JSON.parse(readFileSync(path.join(folder, name), "utf8")) as { result: Script[] };
    for (const { url, functions } of result.filter((script) => script.url.startsWith(`${base}src/`))) {
      const file = url.slice(base.length);
      const whole = painted.get(file) ?? new Uint8Array(readFileSync(path.join(checkout, file), "utf8").length);
      const once = new Uint8Array(whole.length);
      // Inner ranges come after those around them.
      for (const { ranges } of functions)
        for (const { startOffset, endOffset, count } of ranges) once.fill(count > 0 ? 1 : 0, startOffset, endOffset);
      once.forEach((value, at) => {
        if (value === 1) whole[at] = 1;
      });
      painted.set(file, whole);
    }
    rmSync(path.join(folder, name));
  }
  return Object.fromEntries([...painted].map(([file, cells]) => [file, toRanges(cells)]));
}

function listIfAny(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function toRanges(cells: Uint8Array): Ranges {
  const ranges: Ranges = [];
  for (let at = 0; at < cells.length; at += 1) {
    if (cells[at] === 0) continue;
    const last = ranges.at(-1);
    if (last?.[1] === at) last[1] = at + 1;
    else ranges.push([at, at + 1]);
  }
  return ranges;
}

// Which code each test file and the programs that it starts run: the functions of its databases (track_functions), and
// TypeScript by V8. The map is kept between runs. A test file whose text has changed is measured again.
import { existsSync, globSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { root } from "../../support/copy.ts";
import { dropDatabases } from "../../support/database.ts";
import { makeTemporaryFolder, removeFolder } from "../../support/temporary-folder.ts";
import { type Site, runFile, share } from "./sites.ts";
import { digest, readText } from "./mutant.ts";

/** From (inclusive) and to (exclusive), in order. */
type Ranges = [number, number][];

export interface FileCoverage {
  hash: string;
  seconds: number;
  isGreen: boolean;
  /** Calls of each function of the database. */
  functions: Record<string, number>;
  /** What ran of each TypeScript file. */
  source: Record<string, Ranges>;
}

export type Coverage = Record<string, FileCoverage>;

export const cacheFolder = path.join(root, "node_modules/.cache/mutate");
const cacheFile = path.join(cacheFolder, "coverage.json");

// They test other tools, or compare texts of the checkout.
const leftOut = /^test\/(tools\/)?(bench|chaos|mutate|support)\//;

const hashOf = (file: string): string => digest(readText(file));

/** Measures the test files that are new or changed. */
export async function updateCoverage(sites: Site[]): Promise<Coverage> {
  const known = !existsSync(cacheFile) ? {} : (JSON.parse(readFileSync(cacheFile, "utf8")) as Coverage);
  const files = globSync("test/**/*.test.ts", { cwd: root }).filter((file) => !leftOut.test(file));
  const isKnown = (file: string): boolean => known[file]?.isGreen === true && known[file].hash === hashOf(file);
  const coverage = Object.fromEntries(files.filter(isKnown).map((file) => [file, known[file]!]));
  const missing = files.filter((file) => coverage[file] === undefined);
  if (missing.length > 0) console.log(`measuring what ${missing.length} test files run`);
  await share(sites, missing, async (site, file) => {
    coverage[file] = await measure(site, file);
    await dropDatabases(site.server, site.prefix);
    mkdirSync(cacheFolder, { recursive: true });
    writeFileSync(cacheFile, JSON.stringify(coverage));
  });
  const red = files.filter((file) => !coverage[file]!.isGreen);
  if (red.length > 0) console.log(`not used, because they fail without a mutant: ${red.join(", ")}`);
  return coverage;
}

async function measure(site: Site, file: string): Promise<FileCoverage> {
  const folder = makeTemporaryFolder("coupon-coverage-");
  const trace = path.join(folder, "functions");
  writeFileSync(trace, "");
  const v8 = path.join(folder, "v8");
  try {
    const run = await runFile(site, file, 300_000, { NODE_V8_COVERAGE: v8, COUPON_TEST_TRACE: trace });
    return {
      hash: hashOf(file),
      seconds: Math.round(run.seconds * 10) / 10,
      isGreen: run.verdict === "green",
      functions: readTrace(readFileSync(trace, "utf8")),
      source: readV8(v8, site.folder),
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

type Range = { startOffset: number; endOffset: number; count: number };
type Script = { url: string; functions: { ranges: Range[] }[] };

function readV8(folder: string, checkout: string): Record<string, Ranges> {
  const base = `file://${checkout}/`;
  // A cell for each character: 1 if it ran in one of the processes.
  const painted = new Map<string, Uint8Array>();
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const { result } = JSON.parse(readFileSync(path.join(folder, name), "utf8")) as { result: Script[] };
    for (const { url, functions } of result) {
      const file = url.startsWith(base) ? url.slice(base.length) : "";
      if (!/^(src|clients)\//.test(file)) continue;
      const once = new Uint8Array(readFileSync(path.join(checkout, file), "utf8").length);
      // Inner ranges come after those around them.
      for (const { ranges } of functions)
        for (const { startOffset, endOffset, count } of ranges) once.fill(Number(count > 0), startOffset, endOffset);
      const whole = painted.get(file) ?? once;
      painted.set(file, whole);
      once.forEach((cell, at) => (whole[at]! |= cell));
    }
  }
  const toRanges = (cells: Uint8Array): Ranges =>
    [...cells.join("").matchAll(/1+/g)].map(({ index, 0: run }) => [index, index + run.length]);
  return Object.fromEntries([...painted].map(([file, cells]) => [file, toRanges(cells)]));
}

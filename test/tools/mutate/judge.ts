// Judges changed code on a site: loads it, then runs test files until one fails. Keeps the verdicts.
import { execFile } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { type Site, type Texts, runFile, withTexts } from "./sites.ts";
import { cacheFolder } from "./coverage.ts";

export interface Verdict {
  /** invalid: it does not load. compiler: only tsc refuses it. */
  status: "killed" | "timeout" | "compiler" | "survived" | "invalid";
  /** The test that failed. */
  by: string;
  /** The files that passed. */
  passed: string[];
  seconds: number;
}

export type Trial = { test: string; longestMs: number };

export async function judge(site: Site, texts: Texts, trials: Trial[]): Promise<Verdict> {
  const startedAt = performance.now();
  const isTypeScript = [...texts.keys()].some((file) => file.endsWith(".ts"));
  const passed: string[] = [];
  const end = (status: Verdict["status"], by = ""): Verdict => {
    const seconds = Math.round((performance.now() - startedAt) / 100) / 10;
    return { status, by, passed, seconds };
  };
  return withTexts(site, texts, async (site) => {
    if (site === null) return end("invalid");
    const isRefused = async () => isTypeScript && !(await compiles(site.folder));
    for (const { test, longestMs } of trials) {
      // The compiler needs as long as several tests, so the likeliest ones come before it.
      if (passed.length === 3 && (await isRefused())) return end("compiler", "tsc");
      const { verdict, output } = await runTwice(site, test, longestMs);
      if (verdict === "red") return end("killed", `${test}: ${findFailure(output)}`);
      if (verdict === "timeout") return end("timeout", test);
      passed.push(test);
    }
    if (passed.length <= 3 && (await isRefused())) return end("compiler", "tsc");
    return end("survived");
  });
}

/** A late test gets three times as long once more: the machine may have been busy. */
async function runTwice(site: Site, test: string, longestMs: number) {
  const env = { TAP_BAIL: "1" };
  const run = await runFile(site, test, longestMs, env);
  return run.verdict === "timeout" ? runFile(site, test, 3 * longestMs, env) : run;
}

/** The innermost test around the first failed assertion; empty if the file failed without one. */
function findFailure(output: string): string {
  const before = output.slice(0, Math.max(output.search(/^ *not ok /m), 0));
  return [...before.matchAll(/# Subtest: (.*)/g)].at(-1)?.[1] ?? "";
}

/** Whether tsc accepts the code of a checkout. It remembers what it has checked, so the second time is quick. */
export function compiles(folder: string): Promise<boolean> {
  const tsc = path.join(folder, "node_modules/.bin/tsc");
  const args = ["--noEmit", "--incremental", "--tsBuildInfoFile", path.join(folder, ".tsbuildinfo")];
  return new Promise((resolve) => execFile(tsc, args, { cwd: folder }, (error) => resolve(error === null)));
}

export interface Result extends Verdict {
  id: string;
  file: string;
  /** The tests that passed in this run or an earlier one, and the hashes of their files. */
  tried?: Record<string, string>;
}

// One JSON line each. A later line about the same mutant replaces the earlier one.
const resultsFile = path.join(cacheFolder, "results.jsonl");

export function readResults(): Map<string, Result> {
  const lines = existsSync(resultsFile) ? readFileSync(resultsFile, "utf8").split("\n").filter(Boolean) : [];
  return new Map(lines.map((line) => JSON.parse(line) as Result).map((result) => [result.id, result]));
}

export function writeResult(result: Result): void {
  mkdirSync(cacheFolder, { recursive: true });
  appendFileSync(resultsFile, `${JSON.stringify(result)}\n`);
}

/** One line for each folder: how many of the judged mutants were noticed. Invalid ones do not count. */
export function score(results: Result[]): string {
  const judged = results.filter(({ status }) => status !== "invalid");
  const folders = Map.groupBy(judged, ({ file }) => /^db\/code\/\w+|^[^/]+\/[^/]+/.exec(file)![0]);
  return [...[...folders].sort(), ["all", judged] as const]
    .map(([folder, those]) => {
      const noticed = those.filter(({ status }) => status !== "survived").length;
      const late = those.filter(({ status }) => status === "timeout").length;
      const percent = ((100 * noticed) / Math.max(those.length, 1)).toFixed(1).padStart(5);
      const suffix = late > 0 ? `, ${late} by a time-out` : "";
      return `${folder.padEnd(20)} ${percent} %  ${noticed} of ${those.length}${suffix}`;
    })
    .join("\n");
}

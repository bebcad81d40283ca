// Judges one mutant on a bench: loads it, then runs test files until one fails.
import { readFileSync } from "node:fs";
import path from "node:path";
import { execFile } from "node:child_process";
import type { Bench } from "../support/bench.ts";
import { type FileRun, type Place, runFile } from "../support/run-file.ts";
import { applyEdit, type Mutant } from "./mutant.ts";

export interface Verdict {
  /** invalid: it does not load. compiler: only tsc refuses it. */
  status: "killed" | "timeout" | "compiler" | "survived" | "invalid";
  /** The test that failed. */
  by: string;
  /** The files that passed. */
  passed: string[];
  seconds: number;
}

export interface Trial {
  test: string;
  longestMs: number;
}

export async function judge(bench: Bench, mutant: Mutant, trials: Trial[]): Promise<Verdict> {
  const startedAt = performance.now();
  const text = readFileSync(path.join(bench.place.folder, mutant.file), "utf8");
  const texts = new Map([[mutant.file, applyEdit(text, mutant)]]);
  const verdict = await bench.withTexts(texts, (place) => tryMutant(mutant, trials, place));
  return { ...verdict, seconds: Math.round((performance.now() - startedAt) / 100) / 10 };
}

// The compiler is asked once the likeliest tests have passed: it needs as long as several of them.
const testsBeforeCompiler = 3;

async function tryMutant(mutant: Mutant, trials: Trial[], place: Place | null): Promise<Omit<Verdict, "seconds">> {
  const passed: string[] = [];
  if (place === null) return { status: "invalid", by: "", passed };
  const isRefused = async () => mutant.file.endsWith(".ts") && !(await compiles(place.folder));
  for (const { test, longestMs } of trials) {
    if (passed.length === testsBeforeCompiler && (await isRefused())) return { status: "compiler", by: "tsc", passed };
    const run = (limit: number): Promise<FileRun> => runFile(place, test, { longestMs: limit, env: { TAP_BAIL: "1" } });
    let { verdict, output } = await run(longestMs);
    // The machine may have been busy.
    if (verdict === "timeout") ({ verdict, output } = await run(3 * longestMs));
    if (verdict === "red") return { status: "killed", by: `${test}: ${findFailure(output)}`, passed };
    if (verdict === "timeout") return { status: "timeout", by: test, passed };
    passed.push(test);
  }
  if (passed.length <= testsBeforeCompiler && (await isRefused())) return { status: "compiler", by: "tsc", passed };
  return { status: "survived", by: "", passed };
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

// A program of the service for benchmarks and chaos runs: its log goes to a file, as in production, because logging
// costs time that a benchmark should measure.
import type { ChildProcess } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import path from "node:path";
import { endOf, exitCodeOf, hasEnded, spawnProgram } from "./program.ts";
import { waitAtMost } from "./wait-until.ts";

// url: where the program listens; empty for a worker. ended: resolves however the program ends.
export type LoggedProgram = { pid: number; url: string; ended: Promise<void>; stop(): Promise<void> };
export type ProgramName = "serve" | "work";

const readyPatterns: Record<ProgramName, RegExp> = {
  serve: /"url":"(http[^"]+)"/,
  work: /"msg":"(working)"/,
};
const startWithinMs = 60_000;
const running = new Set<ChildProcess>();
let count = 0;

// Resolves when the program is ready.
export async function startLoggedProgram(
  name: ProgramName,
  logFolder: string,
  env: Record<string, string>,
): Promise<LoggedProgram> {
  const logFile = path.join(logFolder, `${name}-${(count += 1)}.log`);
  const log = openSync(logFile, "a");
  const child = spawnProgram(name, { env, stdio: ["ignore", log, log] });
  closeSync(log);
  running.add(child);
  const ended = endOf(child).then(() => void running.delete(child));

  const readLog = () => readFileSync(logFile, "utf8");
  await waitAtMost(startWithinMs, () => readyPatterns[name].test(readLog()) || hasEnded(child));
  const ready = readyPatterns[name].exec(readLog());
  if (ready === null) {
    child.kill("SIGKILL");
    throw new Error(`${name} did not start: ${readLog().trimEnd().split("\n").slice(-3).join(" ")}`);
  }
  return { pid: child.pid!, url: name === "work" ? "" : ready[1]!, ended, stop: () => stop(child) };
}

// For the end of a run, including an aborted one.
export async function stopLoggedPrograms(): Promise<void> {
  await Promise.all([...running].map(stop));
}

async function stop(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  child.kill("SIGTERM");
  await exitCodeOf(child);
}

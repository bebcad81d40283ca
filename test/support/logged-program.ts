// A program for benchmarks and chaos runs: its log goes to a file, as in production, because logging costs time that a
// benchmark should measure.
import type { ChildProcess } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import path from "node:path";
import { root } from "./copy.ts";
import { endOf, exitCodeOf, hasEnded, spawnProgram } from "./program.ts";
import { waitAtMost } from "./wait-until.ts";

// url: where the program listens; empty for a worker. ended: resolves however the program ends.
export type LoggedProgram = { pid: number; url: string; ended: Promise<void>; stop(): Promise<void> };
// A file is a service, which says where it listens as `serve` does.
export type ProgramName = "serve" | "work" | `${string}.ts`;

const isListening = /"url":"(http[^"]+)"/;
const isWorking = /"msg":"(working)"/;
const startWithinMs = 60_000;
const running = new Set<ChildProcess>();
let count = 0;

// Resolves when the program is ready. folder: the checkout that it runs from.
export async function startLoggedProgram(
  name: ProgramName,
  logFolder: string,
  env: Record<string, string>,
  folder = root,
): Promise<LoggedProgram> {
  const logFile = path.join(logFolder, `${path.basename(name)}-${(count += 1)}.log`);
  const log = openSync(logFile, "a");
  const child = spawnProgram(name, { folder, env, stdio: ["ignore", log, log] });
  closeSync(log);
  running.add(child);
  const ended = endOf(child).then(() => void running.delete(child));

  const readyPattern = name === "work" ? isWorking : isListening;
  const readLog = () => readFileSync(logFile, "utf8");
  await waitAtMost(startWithinMs, () => readyPattern.test(readLog()) || hasEnded(child));
  const ready = readyPattern.exec(readLog());
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

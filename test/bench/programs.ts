// The programs of the service as an operator starts them: processes of their own, with the flags that npm gives them.
import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

// url: where it listens; empty of a worker. ended: by whatever.
export type Program = { pid: number; url: string; ended: Promise<void>; stop(): Promise<void> };
export type Name = "serve" | "work" | "start";

const root = path.resolve(import.meta.dirname, "../..");
const readyAfter: Record<Name, RegExp> = {
  serve: /"url":"(http[^"]+)"/,
  work: /"msg":"(working)"/,
  start: /Listening on (http:\S+:\d+)/,
};
const startWithinMs = 60_000;
const running = new Set<ChildProcess>();
let count = 0;

// Its log goes to a file, at the level an operator has: what logging costs is measured too.
export async function startProgram(
  name: Name,
  folder: string,
  env: Record<string, string>,
  flags: string[] = [],
): Promise<Program> {
  const logFile = path.join(folder, `${name}-${(count += 1)}.log`);
  const log = openSync(logFile, "a");
  const child = spawn(process.execPath, [...flags, ...commandOf(name)], {
    cwd: root,
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  running.add(child);
  const ended = new Promise<void>((resolve) =>
    child.once("exit", () => {
      running.delete(child);
      resolve();
    }),
  );

  const deadline = Date.now() + startWithinMs;
  for (;;) {
    const text = readFileSync(logFile, "utf8");
    const ready = readyAfter[name].exec(text);
    if (ready !== null) {
      return { pid: child.pid!, url: name === "work" ? "" : ready[1]!, ended, stop: () => stop(child) };
    }
    if (hasEnded(child) || Date.now() > deadline) {
      child.kill("SIGKILL");
      throw new Error(`${name} did not start: ${text.trimEnd().split("\n").slice(-3).join(" ")}`);
    }
    await sleep(20);
  }
}

// For the end of the run, however it comes.
export async function stopPrograms(): Promise<void> {
  await Promise.all([...running].map(stop));
}

async function stop(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await ended;
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

function commandOf(name: Name): string[] {
  const { scripts } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  return scripts[name]!.split(" ").slice("exec node".split(" ").length);
}

// Runs one test file as a process of its own, without tap's runner, which would take a second for each.
import { spawn } from "node:child_process";
import type { Address } from "../../src/common/database-address.ts";
import { waitFor } from "./wait-until.ts";

export interface Place {
  /** A copy of the checkout. */
  folder: string;
  server: Address;
  /** The migrated database that the tests clone. */
  template: string;
  /** Begins the name of each database of the run. */
  prefix: string;
}

export interface FileRun {
  verdict: "green" | "red" | "timeout";
  seconds: number;
  /** In TAP; at most its first million characters. */
  output: string;
}

export async function runFile(
  place: Place,
  file: string,
  { longestMs, env = {} }: { longestMs: number; env?: Record<string, string> },
): Promise<FileRun> {
  const { folder, ...run } = place;
  const startedAt = performance.now();
  const child = spawn(process.execPath, [file], {
    cwd: folder,
    env: {
      ...process.env,
      COUPON_TEST_RUN: JSON.stringify(run),
      TAP_TIMEOUT: String(Math.ceil(longestMs / 1000)),
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
    // A group of its own, with the programs that it starts.
    detached: true,
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      output = (output + chunk).slice(0, 1_000_000);
    });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    kill(child.pid!);
  }, longestMs);
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const code = await waitFor("the end of a killed test", ended, { withinMs: longestMs + 60_000 });
  clearTimeout(timer);
  // A test that failed may leave programs behind.
  kill(child.pid!);
  // tap leaves the exit code at 0 if a `before` of the file fails.
  const isGreen = code === 0 && !/^not ok/m.test(output);
  const verdict = isLate ? "timeout" : isGreen ? "green" : "red";
  return { verdict, seconds: (performance.now() - startedAt) / 1000, output };
}

function kill(group: number): void {
  try {
    process.kill(-group, "SIGKILL");
  } catch {
    // It has ended.
  }
}

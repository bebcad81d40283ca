// One bash for the blocks of one document, as a reader who pastes them one after the other has.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

export type Ran = { code: number; stdout: string; stderr: string };
export type Shell = { run(text: string): Promise<Ran>; close(): void };

// A block that takes longer belongs in not-run.ts.
const blockMs = 120_000;

export function openShell(cwd: string, env: Record<string, string | undefined>, scratch: string): Shell {
  // A process group, so that what runs in the background ends with it.
  const bash = spawn("bash", ["--noprofile", "--norc"], {
    cwd,
    env,
    stdio: ["pipe", "pipe", "inherit"],
    detached: true,
  });
  bash.stdin.on("error", () => {});
  const lines = createInterface({ input: bash.stdout });
  const [script, stdout, stderr] = ["script", "stdout", "stderr"].map((name) => path.join(scratch, name)) as [
    string,
    string,
    string,
  ];
  const read = (code: number): Ran => ({
    code,
    stdout: readFileSync(stdout, "utf8"),
    stderr: readFileSync(stderr, "utf8"),
  });

  return {
    async run(text) {
      writeFileSync(script, text);
      // set -e ends the shell: then the line with the status never comes.
      bash.stdin.write(`set -e -o pipefail; . '${script}' </dev/null >'${stdout}' 2>'${stderr}'; echo done\n`);
      const ended = once(bash, "close").then(([code]) => read(Number(code ?? 1)));
      const late = sleep(blockMs, null, { ref: false }).then(() => ({
        ...read(124),
        stderr: `not done in ${blockMs / 1_000} s`,
      }));
      return Promise.race([late, once(lines, "line").then(() => read(0)), ended]);
    },
    close() {
      try {
        process.kill(-bash.pid!, "SIGKILL");
      } catch {
        // It ended before.
      }
    },
  };
}

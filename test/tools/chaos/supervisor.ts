// A supervised program of the service: it is restarted at once when it ends, as by systemd or Docker.
import { setTimeout as sleep } from "node:timers/promises";
import { inspectProcess } from "../../../src/embedded/postmaster.ts";
import { startLoggedProgram, type ProgramName } from "../../support/logged-program.ts";

const pauseMs = 100;

// Killed when our process exits, even during a fault: a process stopped by SIGSTOP reacts to no other signal.
const pids = new Set<number>();
process.on("exit", () => {
  for (const pid of pids) if (inspectProcess(pid) !== null) process.kill(pid, "SIGKILL");
});

export async function supervise(name: ProgramName, folder: string, env: Record<string, string>) {
  const start = async () => {
    const program = await startLoggedProgram(name, folder, env);
    pids.add(program.pid);
    void program.ended.then(() => pids.delete(program.pid));
    return program;
  };
  let program = await start();
  let isStopping = false;
  const supervising = keepRunning();

  async function keepRunning(): Promise<void> {
    while (!isStopping) {
      await program.ended;
      await sleep(pauseMs);
      if (isStopping) return;
      // Reports a failed start and tries again, as an operator's supervisor does.
      program = await start().catch((error: unknown) => (console.error(String(error)), program));
    }
  }

  return {
    pid: () => program.pid,
    signal: (signal: NodeJS.Signals) => void process.kill(program.pid, signal),
    async stop(): Promise<void> {
      isStopping = true;
      await program.stop();
      await supervising;
      await program.stop();
    },
  };
}

// A supervised program of the service: it is restarted at once when it ends, as by systemd or Docker.
import { setTimeout as sleep } from "node:timers/promises";
import { inspectProcess } from "../../src/embedded/postmaster.ts";
import { startLoggedProgram, type LoggedProgram, type ProgramName } from "../support/logged-program.ts";

export type Supervised = {
  pid(): number;
  signal(name: NodeJS.Signals): void;
  // Restarts with other flags of node, which stay until the next restart.
  restart(flags?: string[]): Promise<void>;
  stop(): Promise<void>;
};

const pauseMs = 100;

// Killed when our process exits, even during a fault: a process stopped by SIGSTOP reacts to no other signal.
const pids = new Set<number>();
process.on("exit", () => {
  for (const pid of pids) if (inspectProcess(pid) !== null) process.kill(pid, "SIGKILL");
});

export async function supervise(name: ProgramName, folder: string, env: Record<string, string>): Promise<Supervised> {
  let flags: string[] = [];
  let current: LoggedProgram = await startLoggedProgram(name, folder, env);
  let isRestarting = false;
  let isStopping = false;
  let starting: Promise<void> | null = null;
  watch(current);

  function watch(program: LoggedProgram): void {
    pids.add(program.pid);
    void program.ended.then(() => {
      pids.delete(program.pid);
      if (!isStopping && !isRestarting) void start();
    });
  }

  async function start(): Promise<void> {
    starting = (async () => {
      while (!isStopping) {
        await sleep(pauseMs);
        try {
          current = await startLoggedProgram(name, folder, env, flags);
          return watch(current);
        } catch (error) {
          // Reports the failure and tries again, as an operator's supervisor does.
          console.error(String(error));
        }
      }
    })();
    await starting;
  }

  return {
    pid: () => current.pid,
    signal: (signal) => void process.kill(current.pid, signal),
    async restart(next = []) {
      await starting;
      flags = next;
      isRestarting = true;
      await current.stop();
      isRestarting = false;
      await start();
    },
    async stop() {
      isStopping = true;
      await starting;
      await current.stop();
    },
  };
}

// A program of the service under a supervisor: started again at once when it ends, as by systemd or Docker.
import { setTimeout as sleep } from "node:timers/promises";
import { startProgram, type Name, type Program } from "../bench/programs.ts";
import { inspectProcess } from "../../src/embedded/postmaster.ts";

export type Supervised = {
  pid(): number;
  // How often it was started again without our asking.
  restarts(): number;
  signal(name: NodeJS.Signals): void;
  // With other flags of node, until the next time.
  restart(flags?: string[]): Promise<void>;
  stop(): Promise<void>;
};

const pauseMs = 100;

// However we end, also in the middle of a fault: a process that is stopped hears nothing else.
const pids = new Set<number>();
process.on("exit", () => {
  for (const pid of pids) if (inspectProcess(pid) !== null) process.kill(pid, "SIGKILL");
});

export async function supervise(name: Name, folder: string, env: Record<string, string>): Promise<Supervised> {
  let flags: string[] = [];
  let current: Program = await startProgram(name, folder, env);
  let restarts = 0;
  let isOurs = false;
  let isStopping = false;
  let starting: Promise<void> | null = null;
  watch(current);

  function watch(program: Program): void {
    pids.add(program.pid);
    void program.ended.then(() => {
      pids.delete(program.pid);
      if (isStopping || isOurs) return;
      restarts += 1;
      void start();
    });
  }

  async function start(): Promise<void> {
    starting = (async () => {
      while (!isStopping) {
        await sleep(pauseMs);
        try {
          current = await startProgram(name, folder, env, flags);
          return watch(current);
        } catch (error) {
          // As the supervisor of an operator would: it says so and tries on.
          console.error(String(error));
        }
      }
    })();
    await starting;
  }

  return {
    pid: () => current.pid,
    restarts: () => restarts,
    signal: (signal) => void process.kill(current.pid, signal),
    async restart(next = []) {
      await starting;
      flags = next;
      isOurs = true;
      await current.stop();
      isOurs = false;
      await start();
    },
    async stop() {
      isStopping = true;
      await starting;
      await current.stop();
    },
  };
}

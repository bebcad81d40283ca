// Programs that work for a bench in processes of their own: they prepare a job, say so, and run it when told to. They stay
// for all rounds, so that each is run by code that is warm.
import { fork } from "node:child_process";
import path from "node:path";

export type Helper<Job, Result> = {
  // Until it is ready to go.
  prepare(job: Job): Promise<() => Promise<Result>>;
  end(): void;
};
type Told = { ready: true } | { result: unknown } | { error: string };

const helpers = new Set<{ end(): void }>();

export function startHelper<Job, Result>(file: string): Helper<Job, Result> {
  const child = fork(path.join(import.meta.dirname, file), { serialization: "advanced" });
  let isEnding = false;
  let settle: { resolve(told: Told): void; reject(error: Error): void } | null = null;
  child.on("message", (told: Told) => settle?.resolve(told));
  child.on("exit", (code) => isEnding || settle?.reject(new Error(`${file} ended with ${code}`)));

  async function tell(message: object): Promise<Told> {
    const answer = new Promise<Told>((resolve, reject) => {
      settle = { resolve, reject };
    });
    child.send(message);
    const told = await answer;
    if ("error" in told) throw new Error(`${file}: ${told.error}`);
    return told;
  }

  const helper: Helper<Job, Result> = {
    async prepare(job) {
      await tell({ job });
      return async () => {
        const told = await tell({ go: true });
        if (!("result" in told)) throw new Error(`${file} gave no result`);
        return told.result as Result;
      };
    },
    end() {
      isEnding = true;
      helpers.delete(helper);
      if (child.connected) child.disconnect();
    },
  };
  helpers.add(helper);
  return helper;
}

export function endHelpers(): void {
  for (const helper of helpers) helper.end();
}

// The other side: what such a program calls once.
export function serveJobs<Job, Result>(prepare: (job: Job) => Promise<() => Promise<Result>>): void {
  let go: (() => Promise<Result>) | null = null;
  process.on("message", (message: { job: Job } | { go: true }) => {
    void (async () => {
      try {
        if ("job" in message) {
          go = await prepare(message.job);
          process.send!({ ready: true });
        } else {
          process.send!({ result: await go!() });
        }
      } catch (error) {
        process.send!({ error: error instanceof Error ? error.message : String(error) });
      }
    })();
  });
  process.on("disconnect", () => process.exit(0));
  // Ctrl-C comes to the whole group; the run ends us when it is done with us.
  process.on("SIGINT", () => {});
}

// CPU of this process since `before`, in seconds.
export function cpuSecondsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

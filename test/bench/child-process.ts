// Child processes of a benchmark: each prepares a job, reports that it is ready, and waits for the signal to start.
// They live through all rounds, so every measured round runs warm code.
import { fork } from "node:child_process";
import path from "node:path";

export type JobProcess<Job, Result> = {
  // Resolves when the job is ready to start; calling the returned function starts it.
  prepare(job: Job): Promise<() => Promise<Result>>;
  end(): void;
};
type Message = { ready: true } | { result: unknown } | { error: string };

const running = new Set<{ end(): void }>();

export function startChildProcess<Job, Result>(file: string): JobProcess<Job, Result> {
  const child = fork(path.join(import.meta.dirname, file), { serialization: "advanced" });
  let isEnding = false;
  let waiting: { resolve(message: Message): void; reject(error: Error): void } | null = null;
  child.on("message", (message: Message) => waiting?.resolve(message));
  child.on("exit", (code) => isEnding || waiting?.reject(new Error(`${file} ended with ${code}`)));

  async function send(request: object): Promise<Message> {
    const answer = new Promise<Message>((resolve, reject) => {
      waiting = { resolve, reject };
    });
    child.send(request);
    const message = await answer;
    if ("error" in message) throw new Error(`${file}: ${message.error}`);
    return message;
  }

  const childProcess: JobProcess<Job, Result> = {
    async prepare(job) {
      await send({ job });
      return async () => {
        const message = await send({ go: true });
        if (!("result" in message)) throw new Error(`${file} returned no result`);
        return message.result as Result;
      };
    },
    end() {
      isEnding = true;
      running.delete(childProcess);
      if (child.connected) child.disconnect();
    },
  };
  running.add(childProcess);
  return childProcess;
}

export function endChildProcesses(): void {
  for (const childProcess of running) childProcess.end();
}

// The child's side: a child process calls this once.
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
  // Ctrl-C reaches the whole process group. The parent ends its children when it has tidied up.
  process.on("SIGINT", () => {});
}

// CPU time of this process since `before`, in seconds.
export function cpuSecondsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

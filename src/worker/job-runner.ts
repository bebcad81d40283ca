// A job queue that keeps working for months. A runner of graphile-worker can fail permanently: if it cannot record the
// end of jobs, it shuts down and may hang while doing so; if its connections vanish silently, it waits forever. So this
// module replaces a runner that stops or goes silent. The current runner is always in one of these modes:
//
//   none      nothing started yet, or the last runner stopped or failed. The next call starts one.
//   starting  connecting. Every caller waits for the same start.
//   alive     it asked the database for jobs within the last `deadAfterMs`.
//   silent    no sign of life for longer than that. The next call kills it and starts another one.
import type { Runner, TaskSpec } from "graphile-worker";
import { beforeDeadline } from "../common/deadline.ts";
import type { Logger } from "../common/log.ts";

/** Both calls fail if the database does not answer in time. A later call starts a new runner if necessary. */
export type JobRunner = {
  addJob(task: string, payload: object, spec: TaskSpec): Promise<void>;
  keepAlive(): Promise<void>;
  /** Gives up the current runner, because its connections are dead. */
  reconnect(): void;
  stop(): Promise<void>;
};
type Parts = { start: () => Promise<Runner>; onJobEnded: () => void; log: Logger; limits?: Limits };
type Limits = { answerWithinMs: number; deadAfterMs: number };

// Workers poll for jobs every 5 s, and jobs are short: even under full load, some worker polls within half a minute.
const usualLimits: Limits = { answerWithinMs: 10_000, deadAfterMs: 30_000 };

// aliveAt: when the runner last heard from the database, or when its start began. abandoned: aborts when callers should
// stop waiting.
type Current = { runner: Promise<Runner>; aliveAt: number; abandoned: AbortController };

export function createJobRunner({ start, onJobEnded, log, limits = usualLimits }: Parts): JobRunner {
  let current: Current | undefined;
  let stopping: Current | undefined;

  const inTime = <T>(running: Promise<T>, { abandoned }: Current): Promise<T> =>
    beforeDeadline(running, performance.now() + limits.answerWithinMs, abandoned.signal);
  const forget = (ended: Current): void => {
    if (current === ended) current = undefined;
  };

  async function get(): Promise<Current> {
    if (current !== undefined && performance.now() - current.aliveAt > limits.deadAfterMs) {
      log.warn("the job runner does not respond; starting a new one");
      giveUp();
    }
    current ??= startOne();
    const used = current;
    await inTime(used.runner, used);
    return used;
  }

  // Kills it even if its start completes late. Its running jobs continue; running them again is safe.
  function giveUp(): void {
    stopping?.abandoned.abort();
    current?.runner.then((runner) => runner.kill()).catch(() => {});
    current?.abandoned.abort();
    current = undefined;
  }

  function startOne(): Current {
    const started: Current = { runner: start(), aliveAt: performance.now(), abandoned: new AbortController() };
    started.runner.then(
      (runner) => watch(started, runner),
      () => forget(started),
    );
    return started;
  }

  function watch(watched: Current, { events, promise }: Runner): void {
    const noteLife = () => {
      watched.aliveAt = performance.now();
    };
    noteLife();
    events.on("worker:getJob:empty", noteLife);
    events.on("job:start", noteLife);
    events.on("pool:gracefulShutdown", () => forget(watched));
    events.on("job:complete", onJobEnded);
    promise.catch((error: unknown) => log.warn({ err: error }, "the job runner failed")).finally(() => forget(watched));
  }

  return {
    async addJob(task, payload, spec) {
      const used = await get();
      await inTime(
        used.runner.then((runner) => runner.addJob(task, payload, spec)),
        used,
      );
    },
    async keepAlive() {
      await get();
    },
    reconnect: giveUp,
    async stop() {
      stopping = current;
      if (stopping !== undefined) await stopRunner(stopping);
    },
  };
}

// runner.stop() fails when the runner is already stopping, for example after it lost the database. On silent
// connections it hangs, until reconnect() gives them up.
async function stopRunner({ runner, abandoned }: Current): Promise<void> {
  const isAbandoned = new Promise((resolve) => abandoned.signal.addEventListener("abort", resolve));
  await Promise.race([runner.then((one) => one.stop()).catch(() => {}), isAbandoned]);
}

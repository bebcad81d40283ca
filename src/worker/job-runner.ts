// A runner of graphile-worker for programs that run for months. Left alone, one may be lost for good: after jobs whose end could not
// be written it shuts itself down and may never come to an end with that, and on connections that went away without
// a word it waits for ever. So one that begins to stop, or gives no sign of life, is left behind and another one started.
import type { Runner, TaskSpec } from "graphile-worker";
import { beforeDeadline } from "../gate/lane.ts";
import type { Logger } from "../common/log.ts";

export type SteadyRunner = {
  // Both fail when the database does not answer in time; whoever calls them again has another runner then.
  addJob(task: string, payload: object, spec: TaskSpec): Promise<void>;
  keepAlive(): Promise<void>;
  stop(): Promise<void>;
};
type Parts = { start: () => Promise<Runner>; onJobEnded: () => void; log: Logger; limits?: Limits };
type Limits = { answerWithinMs: number; deadAfterMs: number };

// Its workers ask for jobs every 5 s, and no job lasts nearly as long as to keep all of them from it for half a minute.
const usualLimits: Limits = { answerWithinMs: 10_000, deadAfterMs: 30_000 };

// aliveAt: when it was last seen to get something from the database. Until it is started: since when it is about to be.
type Kept = { runner: Promise<Runner>; aliveAt: number };

export function keepRunner({ start, onJobEnded, log, limits = usualLimits }: Parts): SteadyRunner {
  let current: Kept | undefined;

  const inTime = <T>(running: Promise<T>): Promise<T> =>
    beforeDeadline(running, performance.now() + limits.answerWithinMs);
  const forget = (kept: Kept): void => {
    if (current === kept) current = undefined;
  };

  async function get(): Promise<Runner> {
    if (current !== undefined && performance.now() - current.aliveAt > limits.deadAfterMs) {
      log.warn("the runner gives no sign of life, starting another");
      // It ends what it still can, also when it comes up late. What it has begun goes on, and is safe to be begun again.
      current.runner.then((runner) => runner.kill()).catch(() => {});
      current = undefined;
    }
    current ??= startOne();
    return inTime(current.runner);
  }

  function startOne(): Kept {
    const kept: Kept = { runner: start(), aliveAt: performance.now() };
    kept.runner.then(
      (runner) => watch(kept, runner),
      () => forget(kept),
    );
    return kept;
  }

  function watch(kept: Kept, { events, promise }: Runner): void {
    const noteLife = () => {
      kept.aliveAt = performance.now();
    };
    noteLife();
    events.on("worker:getJob:empty", noteLife);
    events.on("job:start", noteLife);
    events.on("pool:gracefulShutdown", () => forget(kept));
    // What was due once may be so again: it need not wait for the next tick.
    events.on("job:complete", onJobEnded);
    promise.catch((error: unknown) => log.warn({ err: error }, "the runner failed")).finally(() => forget(kept));
  }

  return {
    async addJob(task, payload, spec) {
      await inTime((await get()).addJob(task, payload, spec));
    },
    async keepAlive() {
      await get();
    },
    // It refuses when it is stopping of itself, as after losing the database.
    async stop() {
      await current?.runner.then((runner) => runner.stop()).catch(() => {});
    },
  };
}

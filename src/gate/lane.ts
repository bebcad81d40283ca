// A lane runs a limited number of tasks at a time. The others wait in a queue, none of them past its deadline. The
// driver has neither a queue limit nor deadlines, and its promises may never settle.
import { beforeDeadline, msUntil } from "../common/deadline.ts";
import { Unavailable } from "../common/unavailable.ts";

export type Lane = {
  /**
   * Runs `work` as soon as there is room. Rejects with Unavailable when the queue is full or the deadline passes. Work
   * that is still queued at its deadline never starts; work that runs goes on unwatched and keeps its place until it
   * ends. `onHung` is called if that takes longer than `hungAfterMs`. When `abandoned` aborts, all of it is rejected.
   */
  run<T>(deadline: number, work: () => Promise<T>, onHung: () => void): Promise<T>;
  load(): LaneLoad;
};

export type LaneLoad = { busy: number; waiting: number; width: number };

type Waiting = { begin: () => void; isGone: boolean };

export type LaneParts = { width: number; maxWaiting: number; hungAfterMs: number; abandoned?: AbortSignal };

export function createLane({ width, maxWaiting, hungAfterMs, abandoned }: LaneParts): Lane {
  let busy = 0;
  let waitingCount = 0;
  const queue: Waiting[] = [];

  function leave(): void {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      // The next one in the queue takes the place, so `busy` does not change.
      if (!next.isGone) return next.begin();
    }
    busy -= 1;
  }

  function enter(deadline: number): Promise<void> | undefined {
    if (busy < width) {
      busy += 1;
      return undefined;
    }
    if (waitingCount >= maxWaiting) throw new Unavailable("too many requests wait");
    waitingCount += 1;
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { isGone: false, begin };
      const timer = setTimeout(giveUp, msUntil(deadline));
      abandoned?.addEventListener("abort", giveUp);
      queue.push(waiting);
      function leaveQueue() {
        clearTimeout(timer);
        abandoned?.removeEventListener("abort", giveUp);
        waitingCount -= 1;
      }
      function begin() {
        leaveQueue();
        resolve();
      }
      function giveUp() {
        waiting.isGone = true;
        leaveQueue();
        reject(new Unavailable("gave up in the queue"));
      }
    });
  }

  return {
    load: () => ({ busy, waiting: waitingCount, width }),
    async run(deadline, work, onHung) {
      await enter(deadline);
      const watchdog = setTimeout(onHung, hungAfterMs);
      watchdog.unref();
      const running = work().finally(() => {
        clearTimeout(watchdog);
        leave();
      });
      return beforeDeadline(running, deadline, abandoned);
    },
  };
}

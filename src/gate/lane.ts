// A bounded number of pieces of work at once, the rest in a queue, none answered later than its deadline. The
// driver has neither queue limit nor deadline of its own, and a promise of it may never settle.
import { unavailable } from "../common/problem.ts";

export type Lane = {
  // `deadline` is on the clock of performance.now(). Work that has not begun by then never begins; work under way
  // goes on unwatched and keeps its place until it ends. `onHung` is called when it does not.
  run<T>(deadline: number, work: () => Promise<T>, onHung: () => void): Promise<T>;
  load(): LaneLoad;
};

export type LaneLoad = { busy: number; waiting: number; width: number };

type Waiting = { begin: () => void; isGone: boolean };

export type LaneLimits = { width: number; maxWaiting: number; hungAfterMs: number };

export function createLane({ width, maxWaiting, hungAfterMs }: LaneLimits): Lane {
  let busy = 0;
  let waitingCount = 0;
  const queue: Waiting[] = [];

  function leave(): void {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      // The place is handed on, so `busy` stays as it is.
      if (!next.isGone) return next.begin();
    }
    busy -= 1;
  }

  function enter(deadline: number): Promise<void> | undefined {
    if (busy < width) {
      busy += 1;
      return undefined;
    }
    if (waitingCount >= maxWaiting) throw unavailable(new Error("too many requests wait"));
    waitingCount += 1;
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { isGone: false, begin };
      const timer = setTimeout(giveUp, msUntil(deadline));
      queue.push(waiting);
      function begin() {
        clearTimeout(timer);
        waitingCount -= 1;
        resolve();
      }
      function giveUp() {
        waiting.isGone = true;
        waitingCount -= 1;
        reject(unavailable(new Error("deadline passed in the queue")));
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
      return beforeDeadline(running, deadline);
    },
  };
}

// For timers, which warn of times that have passed.
export function msUntil(deadline: number): number {
  return Math.max(0, deadline - performance.now());
}

export function beforeDeadline<T>(running: Promise<T>, deadline: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(unavailable(new Error("deadline passed"))), msUntil(deadline));
    running.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

// Deadlines are points in time on the clock of performance.now().
import { Unavailable } from "./unavailable.ts";

/** Milliseconds until a deadline, never negative: timers warn about negative delays. */
export function msUntil(deadline: number): number {
  return Math.max(0, deadline - performance.now());
}

/** Settles as `running` does, or rejects with Unavailable at the deadline. The work itself continues. */
export function beforeDeadline<T>(running: Promise<T>, deadline: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Unavailable("deadline passed")), msUntil(deadline));
    running.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

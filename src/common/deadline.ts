// Deadlines are points in time on the clock of performance.now().
import { Unavailable } from "./unavailable.ts";

/** Milliseconds until a deadline, never negative: timers warn about negative delays. */
export function msUntil(deadline: number): number {
  return Math.max(0, deadline - performance.now());
}

/**
 * Settles as `running` does, or rejects with Unavailable at the deadline or when `abandoned` aborts. The work itself
 * continues.
 */
export function beforeDeadline<T>(running: Promise<T>, deadline: number, abandoned?: AbortSignal): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const timer = setTimeout(() => reject(new Unavailable("deadline passed")), msUntil(deadline));
  const giveUp = () => reject(new Unavailable("the connection was given up"));
  if (abandoned?.aborted) giveUp();
  abandoned?.addEventListener("abort", giveUp);
  running.then(resolve, reject);
  return promise.finally(() => {
    clearTimeout(timer);
    abandoned?.removeEventListener("abort", giveUp);
  });
}

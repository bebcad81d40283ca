// Deadlines are points in time on the clock of performance.now().
import { Unavailable } from "./unavailable.ts";

/** Milliseconds until a deadline, never negative: timers warn about negative delays. */
function msUntil(deadline: number): number {
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

/** Entries that each have a deadline, watched by one timer. `onPassed` is called for an entry that is still there. */
export type Deadlines<T> = { add(entry: T): void; delete(entry: T): void };

export function watchDeadlines<T extends { deadline: number }>(onPassed: (entry: T) => void): Deadlines<T> {
  const entries = new Set<T>();
  let timer: NodeJS.Timeout | undefined;
  let firesAt = Infinity;

  function fireAt(deadline: number): void {
    clearTimeout(timer);
    firesAt = deadline;
    if (deadline < Infinity) timer = setTimeout(check, msUntil(deadline));
  }

  function check(): void {
    const now = performance.now();
    const passed = [...entries].filter(({ deadline }) => deadline <= now);
    for (const entry of passed) entries.delete(entry);
    let next = Infinity;
    for (const { deadline } of entries) next = Math.min(next, deadline);
    fireAt(next);
    for (const entry of passed) onPassed(entry);
  }

  return {
    add(entry) {
      entries.add(entry);
      if (entry.deadline < firesAt) fireAt(entry.deadline);
    },
    // Most entries leave before their deadline. The timer stays for the others, so it sometimes fires early.
    delete(entry) {
      if (entries.delete(entry) && entries.size === 0) fireAt(Infinity);
    },
  };
}

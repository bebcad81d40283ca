// The delays of timers, so that a test compares them instead of waiting.
import type { Test } from "tap";

/** Returns a list that gets the delay of each timer that begins from now on. `shorten` says how long it really runs. */
export function recordDelays(t: Pick<Test, "teardown">, shorten = (ms: number): number => ms): number[] {
  const delays: number[] = [];
  const { setTimeout: wait } = globalThis;
  const record = (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => {
    delays.push(ms);
    return wait(run, shorten(ms), ...args);
  };
  globalThis.setTimeout = record as typeof setTimeout;
  t.teardown(() => (globalThis.setTimeout = wait));
  return delays;
}

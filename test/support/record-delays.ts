// The delays of timers, so that a test compares them instead of waiting.
import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";
import timers from "node:timers/promises";
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

/** The same for the awaited waits of node:timers/promises. A wait ends at once, unless `shorten` says how long. */
export function recordWaits(t: Pick<Test, "teardown">, shorten = (_ms: number): number => 0): number[] {
  const waits: number[] = [];
  const { setTimeout: wait } = timers;
  const record = (ms = 0, ...more: []): Promise<void> => {
    waits.push(ms);
    return shorten(ms) === 0 ? Promise.resolve() : wait(shorten(ms), ...more);
  };
  const { mock: recording } = mock.method(timers, "setTimeout", record as typeof wait);
  syncBuiltinESMExports();
  t.teardown(() => {
    recording.restore();
    syncBuiltinESMExports();
  });
  return waits;
}

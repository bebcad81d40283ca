// A clock that moves only when the test says so, so that a busy machine changes nothing.
import { mock } from "node:test";
import type { Test } from "tap";

// Stops performance.now(), and with `hasTimers` the global setTimeout too, until the end of the test. With
// `hasTimers`, waitFor has no bound meanwhile but that of the test file.
export function stopClock(t: Pick<Test, "teardown">, { hasTimers = false } = {}): { pass(ms: number): void } {
  let now = Math.ceil(performance.now());
  const clock = mock.method(performance, "now", () => now);
  const { clearTimeout } = globalThis;
  if (hasTimers) {
    mock.timers.enable({ apis: ["setTimeout"] });
    // The mock's own clearTimeout leaves timers running that began before, such as those of a connection that opens.
    const clearMocked = globalThis.clearTimeout;
    globalThis.clearTimeout = ((timer: NodeJS.Timeout) => {
      clearTimeout(timer);
      clearMocked(timer);
    }) as typeof clearTimeout;
  }
  t.teardown(() => {
    clock.mock.restore();
    if (!hasTimers) return;
    mock.timers.reset();
    globalThis.clearTimeout = clearTimeout;
  });
  return {
    pass(ms) {
      now += ms;
      if (hasTimers) mock.timers.tick(ms);
    },
  };
}

// Background work in small steps.
import t from "tap";
import { repeatThrottled } from "../../src/worker/throttle.ts";
import { recordWaits } from "../support/record-delays.ts";
import { stopClock } from "../support/stop-clock.ts";

t.test("each step is followed by a pause of six times its duration, 5 ms at least, and the last by none", async (t) => {
  const clock = stopClock(t);
  const pauses = recordWaits(t);
  const repeat = async (steps: [ms: number, done: number | null][], stopping = new AbortController()) => {
    const left = [...steps];
    await repeatThrottled(async () => {
      const [ms, done] = left.shift()!;
      clock.pass(ms);
      if (left.length === 0 && done) stopping.abort();
      return done;
    }, stopping.signal);
    return { pauses: pauses.splice(0), left: left.length };
  };
  const steps: [number, number | null][] = [
    [10, 5],
    [0.5, 1],
    [100, 0],
  ];
  t.strictSame(await repeat(steps), { pauses: [60, 5], left: 0 });
  t.strictSame(await repeat([[10, null]]), { pauses: [], left: 0 });
  t.strictSame(await repeat([[10, 5]]), { pauses: [60], left: 0 }, "a stop ends it");
});

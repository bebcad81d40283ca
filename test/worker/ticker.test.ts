// Background work in steps: a ticker calls one thing again and again, never faster than it may, and work in small steps
// pauses between them.
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { repeatThrottled } from "../../src/worker/throttle.ts";
import { startTicker } from "../../src/worker/ticker.ts";
import { fits } from "../support/fits.ts";
import { recordWaits } from "../support/record-delays.ts";
import { stopClock } from "../support/stop-clock.ts";
import { createStubLog } from "../support/stub.ts";
import { waitUntil } from "../support/wait-until.ts";

const hour = 3_600_000;
// Long enough for any call that should not come.
const momentMs = 50;

/** A ticker whose ticks do this, by their number from 1. */
function start(everyMs: number | (() => number), act: (count: number) => unknown) {
  const { logger, log } = createStubLog();
  const ticks = { count: 0 };
  const tick = async () => void (await act((ticks.count += 1)));
  return { ticker: startTicker({ name: "orders", everyMs, log: logger, tick }), ticks, log };
}

t.test("a ticker never overlaps itself, continues after a failure, and stop waits for the running tick", async (t) => {
  let running = 0;
  const { ticker, ticks } = start(1, async (count) => {
    running += 1;
    t.equal(running, 1);
    await sleep(1);
    ticker.wake();
    running -= 1;
    if (count % 2 === 0) throw new Error("now and then");
  });
  await waitUntil("ten ticks", () => ticks.count >= 10);
  await ticker.stop();
  t.equal(running, 0);
  const atStop = ticks.count;
  ticker.wake();
  await sleep(momentMs);
  t.equal(ticks.count, atStop);
});

t.test("a ticker that fails pauses in full, however often it is woken", async (t) => {
  const { ticker, ticks } = start(hour, async () => {
    await sleep(0);
    ticker.wake();
    throw new Error("always");
  });
  await sleep(momentMs);
  t.equal(ticks.count, 1, "a wake-up during the failing call starts no other one");
  ticker.wake();
  await sleep(momentMs);
  t.equal(ticks.count, 1, "nor does one after it");
  await ticker.stop();
});

t.test("a ticker that works is woken at once", async (t) => {
  const { ticker, ticks } = start(hour, () => {});
  await sleep(momentMs);
  t.equal(ticks.count, 1);
  ticker.wake();
  t.equal(ticks.count, 2);
  await ticker.stop();
});

t.test("a ticker logs the first of several failures, and that it works again", async (t) => {
  const outcomes = [true, false, false, false, true, true, false, true, true];
  const { ticker, ticks, log } = start(1, (count) => {
    if (outcomes[count - 1] === false) throw new Error("no database");
  });
  await waitUntil("all ticks", () => ticks.count > outcomes.length);
  await ticker.stop();
  const failed = { level: 40, msg: "the ticker failed; it keeps trying", ticker: "orders" };
  const works = { level: 30, msg: "the ticker works again", ticker: "orders" };
  fits(t, log, [failed, works, failed, works]);
});

t.test("a tick that fails because the program stops is not logged", async (t) => {
  const { promise, reject } = Promise.withResolvers<void>();
  const { ticker, log } = start(1, () => promise);
  const stopped = ticker.stop();
  reject(new Error("the connections are closed"));
  await stopped;
  t.strictSame(log, []);
});

t.test("a wake-up during a tick makes one more follow at once, and the pause is asked after each tick", async (t) => {
  const pauses: number[] = [];
  const ends: (() => void)[] = [];
  const askPause = () => {
    pauses.push(ticks.count);
    return ticks.count < 3 ? 1 : hour;
  };
  const { ticker, ticks } = start(askPause, () => new Promise<void>((resolve) => ends.push(resolve)));
  for (let times = 0; times < 3; times += 1) ticker.wake();
  ends[0]!();
  await waitUntil("the second tick", () => ticks.count === 2);
  t.strictSame(pauses, [], "no pause before it");
  ends[1]!();
  await waitUntil("the third tick", () => ticks.count === 3);
  t.strictSame(pauses, [2]);
  ends[2]!();
  await sleep(momentMs);
  t.strictSame([ticks.count, pauses], [3, [2, 3]]);
  await ticker.stop();
});

t.test("each step is followed by a pause of six times its duration, 5 ms at least, and the last by none", async (t) => {
  const clock = stopClock(t);
  const pauses = recordWaits(t);
  const repeat = async (...steps: [ms: number, done: number | null][]) => {
    const stopping = new AbortController();
    await repeatThrottled(async () => {
      const [ms, done] = steps.shift()!;
      clock.pass(ms);
      if (steps.length === 0 && done) stopping.abort();
      return done;
    }, stopping.signal);
    return { pauses: pauses.splice(0), left: steps.length };
  };
  t.strictSame(await repeat([10, 5], [0.5, 1], [100, 0]), { pauses: [60, 5], left: 0 });
  t.strictSame(await repeat([10, null]), { pauses: [], left: 0 });
  t.strictSame(await repeat([10, 5]), { pauses: [60], left: 0 }, "a stop ends it");
});

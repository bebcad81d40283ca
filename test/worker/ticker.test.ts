// A ticker calls one thing again and again, and never faster than it may.
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { createLog } from "../../src/common/log.ts";
import { startTicker } from "../../src/worker/ticker.ts";

const log = createLog("silent");
// Long enough for any call that should not come.
const momentMs = 50;

t.test("a ticker never overlaps itself, continues after a failure, and stop waits for the running tick", async (t) => {
  let running = 0;
  let count = 0;
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  const ticker = startTicker({
    name: "test",
    everyMs: 1,
    log,
    async tick() {
      running += 1;
      t.equal(running, 1);
      count += 1;
      await sleep(1);
      ticker.wake();
      running -= 1;
      if (count === 10) resolve();
      if (count % 2 === 0) throw new Error("now and then");
    },
  });
  await reached;
  await ticker.stop();
  t.equal(running, 0);
  const atStop = count;
  ticker.wake();
  await sleep(momentMs);
  t.equal(count, atStop);
});

t.test("a ticker that fails pauses in full, however often it is woken", async (t) => {
  let count = 0;
  const { promise: failed, resolve } = Promise.withResolvers<void>();
  const ticker = startTicker({
    name: "test",
    everyMs: 3_600_000,
    log,
    async tick() {
      count += 1;
      await sleep(0);
      ticker.wake();
      resolve();
      throw new Error("always");
    },
  });
  await failed;
  await sleep(momentMs);
  t.equal(count, 1, "a wake-up during the failing call starts no other one");
  ticker.wake();
  ticker.wake();
  await sleep(momentMs);
  t.equal(count, 1, "nor does one after it");
  await ticker.stop();
});

t.test("a ticker that works is woken at once", async (t) => {
  let count = 0;
  const ticker = startTicker({ name: "test", everyMs: 3_600_000, log, tick: async () => void (count += 1) });
  await sleep(momentMs);
  t.equal(count, 1);
  ticker.wake();
  t.equal(count, 2);
  await ticker.stop();
});

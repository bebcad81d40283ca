// A ticker calls one thing again and again, and never faster than it may.
import { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { createLog } from "../../src/common/log.ts";
import { startTicker } from "../../src/worker/ticker.ts";
import { waitUntil } from "../support/wait-until.ts";

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

// The lines of the log, as level and message.
function keepLines() {
  const lines: [level: number, text: string, ticker: string][] = [];
  const sink = new Writable({
    write(chunk, _, done) {
      const { level, msg, ticker } = JSON.parse(String(chunk)) as { level: number; msg: string; ticker: string };
      lines.push([level, msg, ticker]);
      done();
    },
  });
  return { lines, log: createLog("info", sink) };
}

t.test("a ticker logs the first of several failures, and that it works again", async (t) => {
  const { lines, log } = keepLines();
  const outcomes = [true, false, false, false, true, true, false, true, true];
  let count = 0;
  const ticker = startTicker({
    name: "orders",
    everyMs: 1,
    log,
    async tick() {
      const isGood = outcomes[count] ?? true;
      count += 1;
      if (!isGood) throw new Error("no database");
    },
  });
  await waitUntil("all ticks", () => count > outcomes.length);
  await ticker.stop();
  const failed = [40, "the ticker failed; it keeps trying", "orders"] as const;
  const works = [30, "the ticker works again", "orders"] as const;
  t.strictSame(lines, [failed, works, failed, works]);
});

t.test("a tick that fails because the program stops is not logged", async (t) => {
  const { lines, log } = keepLines();
  const { promise, reject } = Promise.withResolvers<void>();
  const ticker = startTicker({ name: "orders", everyMs: 1, log, tick: () => promise });
  const stopped = ticker.stop();
  reject(new Error("the connections are closed"));
  await stopped;
  t.strictSame(lines, []);
});

t.test(
  "a wake-up during a tick makes one more follow at once, and the pause is asked for after each tick",
  async (t) => {
    const pauses: number[] = [];
    let count = 0;
    const ticks: (() => void)[] = [];
    const ticker = startTicker({
      name: "test",
      everyMs() {
        pauses.push(count);
        return count < 3 ? 1 : 3_600_000;
      },
      log,
      tick() {
        count += 1;
        return new Promise<void>((resolve) => ticks.push(resolve));
      },
    });
    for (let times = 0; times < 3; times += 1) ticker.wake();
    ticks[0]!();
    await waitUntil("the second tick", () => count === 2);
    t.strictSame(pauses, [], "no pause before it");
    ticks[1]!();
    await waitUntil("the third tick", () => count === 3);
    t.strictSame(pauses, [2]);
    ticks[2]!();
    await sleep(momentMs);
    t.strictSame([count, pauses], [3, [2, 3]]);
    await ticker.stop();
  },
);

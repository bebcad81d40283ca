// Connections that went silent are recognized within a time that is fixed by design, and late answers alone prove
// nothing. A proxy swallows what passes, without a reset.
import { setTimeout as sleep } from "node:timers/promises";
import { mock } from "node:test";
import t, { type Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { heartbeatLimits, silentWithinMs, startHeartbeat } from "../../src/database/heartbeat.ts";
import { idleTimeoutMs } from "../../src/worker/worker-session.ts";
import { createDatabase } from "../support/database.ts";
import { startProxy } from "../support/proxy.ts";
import { waitUntil } from "../support/wait-until.ts";

const { everyMs, lateAfterMs, openWithinMs } = heartbeatLimits;
const { address, drop } = await createDatabase();
const proxy = await startProxy(address);
t.teardown(async () => {
  await proxy.stop();
  await drop();
});

// Records what a heartbeat reports, as words, and counts the sessions that it opens. Returns when it has begun.
async function start() {
  const seen: string[] = [];
  let [count, ended] = [0, 0];
  const heartbeat = startHeartbeat({
    open() {
      count += 1;
      const place = { ...address, host: "127.0.0.1", port: proxy.port };
      const session = openSession(place, { name: "coupon test heartbeat" });
      const end = () => {
        ended += 1;
        return session.end();
      };
      return { ...session, end };
    },
    begin: async (session) => (await session.rows<{ pid: number }>("select pg_backend_pid() as pid"))[0]!.pid,
    onBegin: () => seen.push("begin"),
    onEnd: () => seen.push("end"),
    onSilent: () => seen.push("silent"),
  });
  await waitUntil("the first session", () => seen.length === 1);
  return { seen, opened: () => count, ended: () => ended, stop: heartbeat.stop };
}

// Counts of sessions would be wrong if a new one were given up because the machine is busy.
function openSlowly(t: Test): void {
  heartbeatLimits.openWithinMs = 60_000;
  t.teardown(() => (heartbeatLimits.openWithinMs = openWithinMs));
}

t.test("the limits add up to less than the promises that rest on them", async (t) => {
  t.equal(silentWithinMs, everyMs + lateAfterMs + openWithinMs);
  t.ok(silentWithinMs <= 3_000, "calls are served again within 5 s: 2 s remain to connect and to run the first call");
  t.ok(idleTimeoutMs >= silentWithinMs + 5_000, "a worker stops long before the server frees its lock");
  t.ok(idleTimeoutMs <= 10_000, "others take over within 15 s after a machine vanished");
});

t.test("a session is asked once in each pause, and a stop does not wait for the pause", async (t) => {
  const other = openSession(address, { name: "coupon test" });
  t.teardown(async () => {
    mock.timers.reset();
    await other.end();
  });
  await other.rows("select");
  let asked = 0;
  const begun = Promise.withResolvers<void>();
  const heartbeat = startHeartbeat({
    open() {
      const session = openSession(address, { name: "coupon test heartbeat" });
      const rows = async <T>(text: string) => session.rows<T>(text).finally(() => (asked += 1));
      return { ...session, rows };
    },
    begin: (session) => session.rows("select"),
    onBegin() {
      // From here on, time passes only in ticks.
      mock.timers.enable({ apis: ["setTimeout"] });
      begun.resolve();
    },
    onSilent() {},
  });
  await begun.promise;
  const tickAfterAWhile = async (ms: number) => {
    // Long enough for more questions.
    for (let times = 0; times < 20; times += 1) await other.rows("select");
    mock.timers.tick(ms);
  };
  for (const questions of [1, 2, 3]) {
    await waitUntil(`question ${questions}`, () => asked >= questions);
    await tickAfterAWhile(everyMs - 1);
    await tickAfterAWhile(0);
    t.equal(asked, questions);
    mock.timers.tick(1);
  }
  await waitUntil("the last question", () => asked >= 4);
  await tickAfterAWhile(0);
  let isStopped = false;
  void heartbeat.stop().then(() => (isStopped = true));
  await waitUntil("the stop", () => isStopped, { withinMs: 10_000 });
});

t.test("a closed session is replaced alone; with a silent one, all connections count as silent", async (t) => {
  openSlowly(t);
  const { seen, opened, stop } = await start();
  proxy.cutAll();
  await waitUntil("the next session", () => seen.length === 3);
  t.strictSame([seen, opened()], [["begin", "end", "begin"], 2]);
  proxy.loseAll();
  // Once a newer one answers.
  await waitUntil("the third session", () => seen.length === 6);
  t.strictSame([seen.slice(3), opened()], [["end", "silent", "begin"], 3]);
  await stop();
});

t.test("late answers of a slow network replace nothing", async (t) => {
  openSlowly(t);
  const { seen, opened, ended, stop } = await start();
  // Later than the limit, and earlier than a newer session, which needs several round trips.
  proxy.set({ delay: () => lateAfterMs / 2 + 50 });
  await waitUntil("two doubts", () => opened() === 3);
  await sleep(lateAfterMs);
  proxy.set({});
  t.strictSame(seen, ["begin"]);
  const isEnded = () => ended() === opened() - 1;
  await waitUntil("the end of the sessions that were not needed", isEnded, { withinMs: 10_000 }).finally(stop);
  t.equal(ended(), opened());
});

t.test("while nothing answers the session is lost; the connections are replaced when a new one answers", async (t) => {
  const { seen, stop } = await start();
  proxy.set({ isStalled: true });
  await waitUntil("the loss", () => seen.length === 2);
  await sleep(everyMs + openWithinMs);
  t.strictSame(seen, ["begin", "end"]);
  proxy.set({});
  await waitUntil("the next session", () => seen.length === 4);
  t.strictSame(seen, ["begin", "end", "silent", "begin"]);
  await stop();
});

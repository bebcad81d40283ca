// A lane: a fixed number of calls run, a limited number wait in order, and none starts after its deadline.
import t, { type Test } from "tap";
import { beforeDeadline } from "../../src/common/deadline.ts";
import { Unavailable } from "../../src/common/unavailable.ts";
import { createLane } from "../../src/gate/lane.ts";
import { stopClock } from "../support/stop-clock.ts";
import { waitUntil } from "../support/wait-until.ts";

const soon = (ms = 60_000) => performance.now() + ms;

t.test("A lane keeps its width, its order and its limit, and starts no call after its deadline", async (t) => {
  const lane = createLane({ width: 2, maxWaiting: 3, hungAfterMs: 7_000 });
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const work = (number: number) => () =>
    new Promise<number>((resolve) => {
      begun.push(number);
      ends.push(() => resolve(number));
    });
  const run = (number: number, ms?: number) => lane.run(soon(ms), work(number), () => {});
  const [first, second, late, third, fourth] = [run(1), run(2), run(3, 20), run(4), run(5)];
  await t.rejects(run(6), Unavailable);
  await t.rejects(late, Unavailable);
  t.strictSame(begun, [1, 2]);
  ends[0]!();
  t.equal(await first, 1);
  ends[1]!();
  t.equal(await second, 2);
  await new Promise(setImmediate);
  t.strictSame(begun, [1, 2, 4, 5]);
  ends[2]!();
  ends[3]!();
  t.strictSame(await Promise.all([third, fourth]), [4, 5]);
  await t.rejects(
    lane.run(
      soon(),
      () => Promise.reject(new Error("x")),
      () => {},
    ),
    /x/,
  );
  t.equal(await beforeDeadline(Promise.resolve(1), soon()), 1);
});

// A lane of width 1, in which a task runs until `end`.
function startBusyLane(t: Test, { hungAfterMs = 60_000, abandoned = new AbortController() } = {}) {
  const lane = createLane({ width: 1, maxWaiting: 2, hungAfterMs, abandoned: abandoned.signal });
  const { promise, resolve: end } = Promise.withResolvers<string>();
  t.teardown(() => end("first"));
  let hungCount = 0;
  const running = lane.run(
    soon(60_000),
    () => promise,
    () => (hungCount += 1),
  );
  const wait = (ms = 60_000, work = async () => "done") => lane.run(soon(ms), work, () => {});
  return { lane, running, end: () => end("first"), wait, abandoned, countHung: () => hungCount };
}

t.test("The load of a lane is what runs and what waits in it, at every moment", async (t) => {
  const clock = stopClock(t, { hasTimers: true });
  const { lane, running, end, wait } = startBusyLane(t);
  const load = (busy: number, waiting: number) => ({ busy, waiting, width: 1 });
  t.strictSame(lane.load(), load(1, 0));
  const second = Promise.withResolvers<string>();
  const [next, late] = [wait(40, () => second.promise), wait(20)];
  t.strictSame(lane.load(), load(1, 2));
  await t.rejects(wait(), new Unavailable("too many requests wait"));
  clock.pass(20);
  await t.rejects(late, new Unavailable("gave up in the queue"));
  t.strictSame(lane.load(), load(1, 1));
  end();
  t.equal(await running, "first");
  t.strictSame(lane.load(), load(1, 0));
  // Its deadline passes while it runs: it left the queue long ago.
  clock.pass(20);
  await t.rejects(next, Unavailable);
  await new Promise(setImmediate);
  t.strictSame(lane.load(), load(1, 0));
  second.resolve("second");
  await new Promise(setImmediate);
  t.strictSame(lane.load(), load(0, 0));
  t.equal(await wait(), "done");
});

t.test("Work that does not end is reported once, work that ends is not", async (t) => {
  const hung = startBusyLane(t, { hungAfterMs: 20 });
  await waitUntil("the report", () => hung.countHung() > 0);
  t.strictSame([hung.countHung(), hung.lane.load().busy], [1, 1], "it keeps its place");
  const quick = startBusyLane(t, { hungAfterMs: 100 });
  quick.end();
  await quick.running;
  await new Promise((resolve) => setTimeout(resolve, 150));
  t.equal(quick.countHung(), 0);
});

t.test("When a lane is abandoned, what runs and what waits in it is rejected", async (t) => {
  const { lane, running, wait, abandoned } = startBusyLane(t);
  const waiting = [wait(), wait()];
  abandoned.abort();
  const results = await Promise.allSettled([running, ...waiting]);
  t.ok(results.every((result) => result.status === "rejected" && result.reason instanceof Unavailable));
  t.strictSame(lane.load(), { busy: 1, waiting: 0, width: 1 });

  const other = startBusyLane(t);
  const next = other.wait(60_000, () => new Promise(() => {}));
  other.end();
  await other.running;
  other.abandoned.abort();
  await t.rejects(next, Unavailable);
  t.strictSame(other.lane.load(), { busy: 1, waiting: 0, width: 1 }, "it had left the queue");
});

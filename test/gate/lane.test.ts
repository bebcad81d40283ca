// A lane: a fixed number of calls run, a limited number wait in order, and none starts after its deadline.
import t, { type Test } from "tap";
import { Unavailable } from "../../src/common/unavailable.ts";
import { createLane } from "../../src/gate/lane.ts";
import { stopClock } from "../support/stop-clock.ts";
import { waitUntil } from "../support/wait-until.ts";

const soon = (ms = 60_000) => performance.now() + ms;

t.test("A tenant gets its share of a lane and half of its queue; work for no tenant gets all", async (t) => {
  const lane = createLane({ width: 3, widthOfTenant: 2, maxWaiting: 4, hungAfterMs: 60_000 });
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (tenantId: number | null, name: string, ms?: number) => {
    const work = () => {
      begun.push(name);
      return new Promise<void>((resolve) => ends.set(name, resolve));
    };
    return lane.run(tenantId, soon(ms), work, () => {});
  };
  const settle = () => new Promise(setImmediate);
  const end = async (name: string) => {
    ends.get(name)!();
    await settle();
  };
  const all = [run(1, "a1"), run(1, "a2"), run(1, "a3"), run(1, "a4")];
  await t.rejects(run(1, "a5"), new Unavailable("too many requests wait"));
  t.strictSame([begun, lane.load()], [["a1", "a2"], { busy: 2, waiting: 2, width: 3 }], "one place stays free");
  all.push(run(2, "b1"), run(2, "b2"));
  await settle();
  t.strictSame(begun.splice(0), ["a1", "a2", "b1"], "another tenant passes those that wait");
  await end("b1");
  t.strictSame(begun.splice(0), ["b2"], "the first in the queue whose tenant has room");
  await end("a2");
  t.strictSame(begun.splice(0), ["a3"]);
  all.push(run(null, "c1"), run(null, "c2"), run(null, "c3"));
  await t.rejects(run(2, "b3"), new Unavailable("too many requests wait"), "the queue is full for everyone");
  for (const name of ["b2", "a1", "a3"]) await end(name);
  t.strictSame(begun, ["c1", "a4", "c2"]);
  await end("a4");
  t.strictSame([begun.pop(), lane.load()], ["c3", { busy: 3, waiting: 0, width: 3 }], "more than a tenant's share");
  for (const name of ["c1", "c2", "c3"]) await end(name);
  await Promise.all(all);
  t.strictSame(lane.load(), { busy: 0, waiting: 0, width: 3 });
});

t.test("A task goes behind one that runs at a place of its tenant, if nobody waits for a place", async (t) => {
  const clock = stopClock(t, { hasTimers: true });
  const lane = createLane({ width: 2, widthOfTenant: 1, maxWaiting: 4, hungAfterMs: 100 });
  const places = new Map<string, object>();
  const ends = new Map<string, () => void>();
  let hungCount = 0;
  const run = (tenantId: number, name: string, isBehind = true) => {
    const work = (place: object) => {
      places.set(name, place);
      return new Promise<void>((resolve) => ends.set(name, resolve));
    };
    return lane.run(tenantId, soon(), work, () => (hungCount += 1), isBehind);
  };
  const end = async (name: string) => {
    ends.get(name)!();
    await new Promise(setImmediate);
  };
  const all = [run(1, "a1"), run(2, "b1"), run(1, "a2")];
  t.equal(places.get("a2"), places.get("a1"));
  t.not(places.get("b1"), places.get("a1"), "a place of another tenant");
  t.strictSame(lane.load(), { busy: 2, waiting: 0, width: 2 });
  all.push(run(1, "a3"));
  t.strictSame(lane.load(), { busy: 2, waiting: 1, width: 2 }, "a place takes two");
  all.push(run(2, "b2"));
  t.strictSame(lane.load(), { busy: 2, waiting: 2, width: 2 }, "someone waits");
  clock.pass(99);
  await end("a1");
  t.strictSame(lane.load(), { busy: 2, waiting: 2, width: 2 }, "its place is not free");
  clock.pass(1);
  t.equal(hungCount, 1, "b1 hangs");
  clock.pass(98);
  t.equal(hungCount, 1, "a2 has had its place for 99 ms");
  clock.pass(1);
  t.equal(hungCount, 2, "a2 hangs");
  await end("a2");
  t.not(places.get("a3"), places.get("a1"));
  await end("b1");
  all.push(run(2, "b3"));
  t.equal(places.get("b3"), places.get("b2"));
  for (const name of ["a3", "b2", "b3"]) await end(name);
  await Promise.all(all);
  t.strictSame(lane.load(), { busy: 0, waiting: 0, width: 2 });
});

// A lane of width 1, in which a task runs until `end`.
function startBusyLane(t: Test, { hungAfterMs = 60_000, abandoned = new AbortController() } = {}) {
  const lane = createLane({ width: 1, widthOfTenant: 1, maxWaiting: 2, hungAfterMs, abandoned: abandoned.signal });
  const { promise, resolve: end } = Promise.withResolvers<string>();
  t.teardown(() => end("first"));
  let hungCount = 0;
  const running = lane.run(
    null,
    soon(60_000),
    () => promise,
    () => (hungCount += 1),
  );
  const wait = (ms = 60_000, work = async () => "done") => lane.run(null, soon(ms), work, () => {});
  return { lane, running, end: () => end("first"), wait, abandoned, countHung: () => hungCount };
}

t.test("The load of a lane is what runs and what waits in it, at every moment", async (t) => {
  const clock = stopClock(t, { hasTimers: true });
  const { lane, running, end, wait } = startBusyLane(t);
  const load = (busy: number, waiting: number) => ({ busy, waiting, width: 1 });
  t.strictSame(lane.load(), load(1, 0));
  const second = Promise.withResolvers<string>();
  let hasBegunLate = false;
  const beginLate = async () => {
    hasBegunLate = true;
    return "late";
  };
  const [late, next] = [wait(20, beginLate), wait(40, () => second.promise)];
  t.strictSame(lane.load(), load(1, 2));
  await t.rejects(wait(), new Unavailable("too many requests wait"));
  clock.pass(20);
  await t.rejects(late, new Unavailable("deadline passed"));
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
  t.equal(hasBegunLate, false, "work that still waits at its deadline never starts");
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

// A lane: a fixed number of calls run, a limited number wait in order, and none starts after its deadline.
import t from "tap";
import { beforeDeadline } from "../../src/common/deadline.ts";
import { Unavailable } from "../../src/common/unavailable.ts";
import { createLane } from "../../src/gate/lane.ts";

const soon = (ms = 1_000) => performance.now() + ms;

t.test("A lane keeps its width, its order and its limit, and starts no call after its deadline", async (t) => {
  const lane = createLane({ width: 2, maxWaiting: 3, hungAfterMs: 7_000 });
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const work = (number: number) => () =>
    new Promise<number>((resolve) => {
      begun.push(number);
      ends.push(() => resolve(number));
    });
  const run = (number: number, ms: number) => lane.run(soon(ms), work(number), () => {});
  const [first, second, late, third, fourth] = [run(1, 1_000), run(2, 1_000), run(3, 20), run(4, 1_000), run(5, 1_000)];
  await t.rejects(run(6, 1_000), Unavailable);
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

// Which calls share a group, when a group starts, and what happens to its calls when it fails. The database is a list
// of the groups that were sent.
import { setImmediate as nextTurn } from "node:timers/promises";
import t from "tap";
import { Unavailable } from "../../src/common/unavailable.ts";
import { createGroups } from "../../src/gate/groups.ts";
import { fits } from "../support/fits.ts";
import { stopClock } from "../support/stop-clock.ts";

const soon = (ms = 60_000) => performance.now() + ms;
const callError = new Error("caused by a call");

type Sent = {
  tenant: number;
  calls: string[];
  deadline: number;
  isBehind: boolean;
  end(): void;
  fail(error: Error): void;
};

function startGroups({ maxWaiting = 1_000, areCommitsSlow = (): boolean => false } = {}) {
  const sent: Sent[] = [];
  const groups = createGroups<string, string>({
    send(tenant, calls, deadline, isBehind) {
      const { promise, resolve, reject } = Promise.withResolvers<string[]>();
      const end = () => resolve(calls.map((call) => `answer of ${call}`));
      sent.push({ tenant, calls, deadline, isBehind, end, fail: reject });
      return promise;
    },
    isCausedByCall: (error) => error === callError,
    areCommitsSlow,
    largest: 64,
    maxWaiting,
  });
  const run = (call: string, { tenant = 1, deadline = soon() } = {}) => groups.run(tenant, call, deadline);
  const runMany = (first: number, count: number) =>
    Array.from({ length: count }, (_, index) => run(`c${first + index}`));
  const sizes = () => sent.map(({ calls }) => calls.length);
  const places = () => sent.map(({ isBehind }) => (isBehind ? "behind" : "beside"));
  return { groups, sent, run, runMany, sizes, places };
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 3; turn += 1) await nextTurn();
};

t.test("calls of one turn form one group, and each gets its own answer", async (t) => {
  const { groups, sent, run } = startGroups();
  const [early, late] = [soon(50_000), soon(70_000)];
  const running = [run("a", { deadline: early }), run("b", { deadline: late }), run("c", { deadline: early })];
  t.strictSame([sent.length, groups.waiting()], [0, 3], "the turn is not over");
  await settle();
  t.equal(groups.waiting(), 0);
  fits(t, sent, [{ tenant: 1, calls: ["a", "b", "c"], deadline: late }]);
  sent[0]!.end();
  t.strictSame(await Promise.all(running), ["answer of a", "answer of b", "answer of c"]);
});

t.test("two groups of a tenant run: half of its calls go behind the first, 16 beside it and at once", async (t) => {
  const { groups, sent, runMany, sizes, places } = startGroups();
  const running = runMany(1, 5);
  await settle();
  running.push(...runMany(6, 4));
  await settle();
  t.strictSame([sizes(), groups.waiting()], [[5], 4], "less than half of nine");
  running.push(...runMany(10, 10));
  t.strictSame(sizes(), [5], "the turn is not over");
  await settle();
  t.strictSame([sizes(), places()[1], groups.waiting()], [[5, 10], "behind", 4], "half of 19");
  running.push(...runMany(20, 40));
  await settle();
  t.strictSame([sizes(), groups.waiting()], [[5, 10], 44], "never a third one");
  sent[0]!.end();
  await settle();
  t.strictSame([sizes(), places()[2]], [[5, 10, 44], "beside"]);
  sent[1]!.end();
  await settle();
  running.push(...runMany(60, 16));
  t.strictSame([sizes(), places()[3]], [[5, 10, 44, 16], "beside"]);
  for (const { end } of sent) end();
  t.strictSame(
    await Promise.all(running),
    Array.from({ length: 75 }, (_, index) => `answer of c${index + 1}`),
  );
});

t.test("while commits are slow, a second group goes beside the first", async (t) => {
  let areSlow = true;
  const { sent, run, places } = startGroups({ areCommitsSlow: () => areSlow });
  const running = [run("a")];
  await settle();
  running.push(run("b"));
  await settle();
  areSlow = false;
  sent[0]!.end();
  running.push(run("c"));
  await settle();
  t.strictSame(places(), ["beside", "beside", "behind"]);
  for (const { end } of sent) end();
  await Promise.all(running);
});

t.test("a group that fails does not harm the one behind it", async (t) => {
  const { sent, run } = startGroups();
  const first = [run("a"), run("b")];
  await settle();
  const second = [run("c"), run("d")];
  await settle();
  sent[0]!.fail(callError);
  await settle();
  fits(
    t,
    sent.map(({ calls, isBehind }) => [calls, isBehind]),
    [
      [["a", "b"], false],
      [["c", "d"], true],
      [["a"], false],
      [["b"], false],
    ],
  );
  for (const { end } of sent) end();
  t.strictSame(
    await Promise.all([...first, ...second]),
    ["a", "b", "c", "d"].map((call) => `answer of ${call}`),
  );
});

t.test("a call over the limit of waiting calls is refused, whichever tenant they are of", async (t) => {
  const { groups, sent, run } = startGroups({ maxWaiting: 3 });
  const running = [run("a", { tenant: 1 }), run("b", { tenant: 2 }), run("c", { tenant: 3 })];
  t.throws(() => run("d", { tenant: 4 }), new Unavailable("too many requests wait"));
  await settle();
  t.equal(groups.waiting(), 0);
  running.push(run("e", { tenant: 4 }));
  await settle();
  for (const { end } of sent) end();
  t.equal((await Promise.all(running)).length, 4);
});

t.test("a call whose deadline passes is refused, and is not sent if it still waits", async (t) => {
  const clock = stopClock(t, { hasTimers: true });
  const { groups, sent, run } = startGroups();
  const first = run("a", { deadline: soon(30) });
  await settle();
  const [late, next] = [run("b", { deadline: soon(30) }), run("c")];
  clock.pass(30);
  await t.rejects(first, new Unavailable("deadline passed"), "although it runs");
  await t.rejects(late, new Unavailable("deadline passed"));
  sent[0]!.end();
  await settle();
  t.strictSame(sent[1]!.calls, ["c"]);
  sent[1]!.end();
  t.equal(await next, "answer of c");

  const over = run("d", { deadline: soon(20) });
  await settle();
  const lone = run("e", { deadline: soon(20) });
  clock.pass(20);
  await Promise.allSettled([over, lone]);
  sent[2]!.end();
  await settle();
  t.strictSame([sent.length, groups.waiting()], [3, 0], "a group without calls is not sent");
  const after = run("f");
  await settle();
  sent[3]!.end();
  t.equal(await after, "answer of f");
});

t.test(
  "if a call made its group fail, its calls are sent one by one, those that still wait for an answer",
  async (t) => {
    const clock = stopClock(t, { hasTimers: true });
    const { sent, run } = startGroups();
    const [a, late, c] = [run("a"), run("b", { deadline: soon(30) }), run("c")];
    await settle();
    clock.pass(30);
    await t.rejects(late, Unavailable);
    sent[0]!.fail(callError);
    await settle();
    fits(
      t,
      sent.slice(1).map(({ calls }) => calls),
      [["a"], ["c"]],
    );
    sent[1]!.end();
    sent[2]!.fail(callError);
    t.equal(await a, "answer of a");
    await t.rejects(c, callError);
    t.equal(sent.length, 3, "a single call is not sent again");
  },
);

// Many deadlines on one timer.
import t from "tap";
import { watchDeadlines } from "../../src/common/deadline.ts";
import { waitUntil } from "../support/wait-until.ts";

type Entry = { name: string; deadline: number };

function start() {
  const passed: string[] = [];
  const early: string[] = [];
  const deadlines = watchDeadlines<Entry>(({ name, deadline }) => {
    passed.push(name);
    if (performance.now() < deadline) early.push(name);
  });
  const add = (name: string, ms: number): Entry => {
    const entry = { name, deadline: performance.now() + ms };
    deadlines.add(entry);
    return entry;
  };
  return { passed, early, deadlines, add };
}

t.test("each deadline passes once and not early, in whatever order they came", async (t) => {
  const { passed, early, deadlines, add } = start();
  const before = add("far", 600_000);
  for (const [name, ms] of [
    ["c", 90],
    ["a", 10],
    ["d", 130],
    ["b", 50],
    ["now", -5],
  ] as const)
    add(name, ms);
  const after = add("farther", 700_000);
  await waitUntil("all deadlines have passed", () => passed.length >= 5);
  add("last", 5);
  await waitUntil("the last one has passed", () => passed.length >= 6);
  for (const entry of [before, after]) deadlines.delete(entry);
  t.strictSame([passed.toSorted(), early], [["a", "b", "c", "d", "last", "now"], []]);
});

t.test("an entry that has left does not pass; the others do", async (t) => {
  const { passed, deadlines, add } = start();
  const first = add("first", 10);
  const second = add("second", 20);
  add("third", 30);
  deadlines.delete(first);
  deadlines.delete(second);
  deadlines.delete(second);
  await waitUntil("the third has passed", () => passed.length >= 1);
  const fourth = add("fourth", 5);
  deadlines.delete(fourth);
  add("fifth", 10);
  await waitUntil("the fifth has passed", () => passed.length >= 2);
  t.strictSame(passed, ["third", "fifth"]);
});

// Many deadlines on one timer.
import t from "tap";
import { watchDeadlines } from "../../src/common/deadline.ts";
import { waitUntil } from "../support/wait-until.ts";

type Entry = { name: string; deadline: number };

t.test("each deadline passes once and not early, in whatever order they came, unless its entry has left", async (t) => {
  const [passed, early] = [[] as string[], [] as string[]];
  const deadlines = watchDeadlines<Entry>(({ name, deadline }) => {
    passed.push(name);
    if (performance.now() < deadline) early.push(name);
  });
  const add = (name: string, ms: number): Entry => {
    const entry = { name, deadline: performance.now() + ms };
    deadlines.add(entry);
    return entry;
  };
  const far = add("far", 600_000);
  const leaving = [add("leaves first", 5), add("leaves later", 20)];
  for (const [name, ms] of [
    ["c", 90],
    ["a", 10],
    ["b", 50],
    ["now", -5],
  ] as const)
    add(name, ms);
  const farther = add("farther", 700_000);
  for (const entry of [...leaving, ...leaving]) deadlines.delete(entry);
  await waitUntil("all deadlines to pass", () => passed.length >= 4);
  deadlines.delete(add("leaves at once", 5));
  add("last", 10);
  await waitUntil("the last one to pass", () => passed.length >= 5);
  for (const entry of [far, farther]) deadlines.delete(entry);
  t.strictSame([passed.toSorted(), early], [["a", "b", "c", "last", "now"], []]);
  // Without entries, the timer starts anew.
  add("again", 5);
  await waitUntil("the next one to pass", () => passed.length >= 6);
});

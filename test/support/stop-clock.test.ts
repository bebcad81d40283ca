import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { stopClock } from "./stop-clock.ts";

t.test("A timer that began before the clock was stopped can be cleared while it stands still", async (t) => {
  let hasFired = false;
  const before = setTimeout(() => (hasFired = true), 20);
  await t.test("the clock stands still", async (t) => {
    const clock = stopClock(t, { hasTimers: true });
    clearTimeout(before);
    const fired: string[] = [];
    const cleared = setTimeout(() => fired.push("cleared"), 10);
    setTimeout(() => fired.push("kept"), 10);
    clearTimeout(cleared);
    clock.pass(10);
    t.strictSame(fired, ["kept"]);
  });
  await sleep(40);
  t.equal(hasFired, false);
});

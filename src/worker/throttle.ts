// Work in small steps, so that no transaction is long and no row is held long. After each step there is a pause of six
// times as long as the step took: nothing of it is urgent, and whatever the machine, most of the time is left to others.
import { setTimeout as sleep } from "node:timers/promises";

const shortestPauseMs = 5;
const pausePerStep = 6;

// Repeats the step until it finds nothing left (0), or the program is to stop. Gives the sum.
export async function stepByStep(step: () => Promise<number>, stopping: AbortSignal): Promise<number> {
  let total = 0;
  while (!stopping.aborted) {
    const begin = performance.now();
    const count = await step();
    if (count === 0) break;
    total += count;
    await sleep(Math.max((performance.now() - begin) * pausePerStep, shortestPauseMs));
  }
  return total;
}

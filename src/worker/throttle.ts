// Background work in small steps, so that no transaction is long and no row is locked for long. This work is not
// urgent: after each step, it pauses for six times the duration of the step, which leaves most of the time to other
// work on any machine.
import { setTimeout as sleep } from "node:timers/promises";

const shortestPauseMs = 5;
const pausePerStep = 6;

/** Repeats the step until it returns 0 or null, or the program stops. */
export async function repeatThrottled(step: () => Promise<number | null>, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    const startedAt = performance.now();
    if (!(await step())) break;
    await sleep(Math.max((performance.now() - startedAt) * pausePerStep, shortestPauseMs));
  }
}

// Waiting for what another process does.
import { setTimeout as sleep } from "node:timers/promises";

const pauseMs = 20;
const hungAfterMs = 1_800_000;

// Asks again until there is an answer.
export async function until<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  for (const since = performance.now(); performance.now() < since + hungAfterMs; await sleep(pauseMs)) {
    const found = await look();
    if (found !== null) return found;
  }
  throw new Error(`waited half an hour for ${what}`);
}

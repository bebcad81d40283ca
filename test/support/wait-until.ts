// Waits for something that another process does, and says what it waited for when that never happens.
import { setTimeout as sleep } from "node:timers/promises";

// The real clock, also where a test stops performance.now().
const performance = { now: globalThis.performance.now.bind(globalThis.performance) };

type Bounds = { everyMs?: number; withinMs?: number };

// Less than the time limit of a test file, so that the error says what did not come.
const usuallyWithinMs = 150_000;

// Checks until the answer is neither false, null nor undefined, and returns that answer.
export async function waitUntil<T>(
  what: string,
  check: () => T | Promise<T>,
  bounds: Bounds = {},
): Promise<Exclude<T, false | null | undefined>> {
  const { withinMs = usuallyWithinMs } = bounds;
  const found = await waitAtMost(withinMs, check, bounds);
  if (found === null) throw new Error(`waited ${withinMs / 1_000} s for ${what}`);
  return found;
}

// Returns null when the time is over.
export async function waitAtMost<T>(
  withinMs: number,
  check: () => T | Promise<T>,
  { everyMs = 20 }: Pick<Bounds, "everyMs"> = {},
): Promise<Exclude<T, false | null | undefined> | null> {
  for (const deadline = performance.now() + withinMs; ; await sleep(everyMs)) {
    const found = await check();
    if (found !== false && found !== null && found !== undefined) return found as Exclude<T, false | null | undefined>;
    if (performance.now() >= deadline) return null;
  }
}

// Waits for something that happens once.
export async function waitFor<T>(
  what: string,
  promise: Promise<T>,
  { withinMs = usuallyWithinMs }: Pick<Bounds, "withinMs"> = {},
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${withinMs / 1_000} s for ${what}`)), withinMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

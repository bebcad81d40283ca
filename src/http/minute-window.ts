// Windows of a minute, one per key: no minute, wherever it begins, has more than `limit` takes. A token bucket would
// allow nearly twice as many in its first minute. They are in the memory of this process, as token-bucket.ts keeps its.
import { putLast, type Quotas } from "./token-bucket.ts";

const windowMs = 60_000;

export function createWindows(limit: number, now = () => performance.now()): Quotas {
  // The times of the takes of the last minute, at most `limit` of them, in order.
  const taken = new Map<string, number[]>();

  function timesOf(key: string): number[] {
    const times = taken.get(key) ?? [];
    while (times.length > 0 && times[0]! <= now() - windowMs) times.shift();
    return times;
  }
  const secondsUntilGone = (time: number | undefined) => (time === undefined ? 0 : (time + windowMs - now()) / 1_000);
  const left = (key: string) => limit - timesOf(key).length;

  return {
    left,
    take: (key) => putLast(taken, key, [...timesOf(key), now()]),
    secondsToNext: (key) => (left(key) > 0 ? 0 : secondsUntilGone(timesOf(key)[0])),
    secondsToFull: (key) => secondsUntilGone(timesOf(key).at(-1)),
  };
}

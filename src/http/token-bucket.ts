// Token buckets, one per key: a key may take `burst` tokens at once and `perSecond` on average. They are in the memory
// of this process, at most maxKept of them.

export type Quota = { perSecond: number; burst: number };
/** What each key may still take. */
export type Quotas = {
  left(key: string): number;
  take(key: string): void;
  /** Seconds until one can be taken, and until nothing counts as taken; 0 if that is so now. */
  secondsToNext(key: string): number;
  secondsToFull(key: string): number;
};

const maxKept = 10_000;

/** Puts an entry behind the others. The first one matters least, so it goes when there are too many. */
export function putLast<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  if (map.size >= maxKept) map.delete(map.keys().next().value!);
  map.set(key, value);
}

export function createBuckets({ perSecond, burst }: Quota, now = () => performance.now()): Quotas {
  // A key without an entry has a full bucket.
  const taken = new Map<string, { left: number; at: number }>();

  function left(key: string): number {
    const entry = taken.get(key);
    return entry === undefined ? burst : Math.min(burst, entry.left + ((now() - entry.at) / 1_000) * perSecond);
  }

  return {
    left,
    // The bucket that was taken from first has refilled longest.
    take: (key) => putLast(taken, key, { left: left(key) - 1, at: now() }),
    secondsToNext: (key) => Math.max(0, (1 - left(key)) / perSecond),
    secondsToFull: (key) => (burst - left(key)) / perSecond,
  };
}

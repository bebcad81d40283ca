// Token buckets, one per key: a key may take `burst` tokens at once and `perSecond` on average. They are in the memory
// of this process, at most maxKept of them.

export type Quota = { perSecond: number; burst: number };
export type Buckets = {
  /** Negative if concurrent calls took more tokens than there were; the bucket first refills to zero. */
  left(key: string): number;
  take(key: string): void;
  /** Seconds until a token can be taken, and until the bucket is full; 0 if that is so now. */
  secondsToNext(key: string): number;
  secondsToFull(key: string): number;
};

const maxKept = 10_000;

export function createBuckets({ perSecond, burst }: Quota, now = () => performance.now()): Buckets {
  // A key without an entry has a full bucket.
  const taken = new Map<string, { left: number; at: number }>();

  function left(key: string): number {
    const entry = taken.get(key);
    return entry === undefined ? burst : Math.min(burst, entry.left + ((now() - entry.at) / 1_000) * perSecond);
  }

  return {
    left,
    take(key) {
      const entry = { left: left(key) - 1, at: now() };
      // The map is in the order of the last take. The first bucket has refilled longest, so dropping it matters least.
      taken.delete(key);
      if (taken.size >= maxKept) taken.delete(taken.keys().next().value!);
      taken.set(key, entry);
    },
    secondsToNext: (key) => Math.max(0, (1 - left(key)) / perSecond),
    secondsToFull: (key) => (burst - left(key)) / perSecond,
  };
}

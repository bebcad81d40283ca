// Token buckets, one for each key: a key may take `burst` tokens at once and `perSecond` in the long run. They live in
// the memory of this process, at most maxKept of them.

export type Quota = { perSecond: number; burst: number };
export type Buckets = {
  /** Negative if concurrent calls took tokens in advance; the bucket first has to refill past zero. */
  left(key: string): number;
  take(key: string): void;
  /** Seconds until a token can be taken, and until the bucket is full; 0 if that is so now. */
  secondsToNext(key: string): number;
  secondsToFull(key: string): number;
};

const maxKept = 10_000;

export function createBuckets(
  { perSecond, burst }: Quota,
  { now = () => performance.now(), most = maxKept } = {},
): Buckets {
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
      // The map is ordered by the last take. Its first entry has refilled longest, so forgetting that one matters
      // least.
      taken.delete(key);
      if (taken.size >= most) taken.delete(taken.keys().next().value!);
      taken.set(key, entry);
    },
    secondsToNext: (key) => Math.max(0, (1 - left(key)) / perSecond),
    secondsToFull: (key) => (burst - left(key)) / perSecond,
  };
}

// Token buckets, one a key: a key may take `burst` at once and `perSecond` in the long run. In memory, of this process
// alone, and no more of them than maxKept.

export type Quota = { perSecond: number; burst: number };
export type Buckets = {
  // Below zero: taken in advance, by calls that were under way together. It has to fill up again first.
  left(key: string): number;
  take(key: string): void;
  // Until one can be taken, and until the bucket is full. 0: at once, it is.
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
      // Last in the map is who took last; the first has waited longest, so its bucket is the fullest to forget.
      taken.delete(key);
      if (taken.size >= most) taken.delete(taken.keys().next().value!);
      taken.set(key, entry);
    },
    secondsToNext: (key) => Math.max(0, (1 - left(key)) / perSecond),
    secondsToFull: (key) => (burst - left(key)) / perSecond,
  };
}

// Token buckets: their burst, their rate and the number of keys they keep.
import t from "tap";
import { createBuckets } from "../../src/http/token-bucket.ts";

t.test("A bucket grants its burst at once, refills at its rate, and never holds more than the burst", async (t) => {
  let now = 0;
  const buckets = createBuckets({ perSecond: 2, burst: 3 }, { now: () => now });
  for (const left of [3, 2, 1]) {
    t.equal(buckets.left("a"), left);
    buckets.take("a");
  }
  t.strictSame([buckets.left("a"), buckets.left("b")], [0, 3], "each key has its own bucket");
  t.strictSame([buckets.secondsToNext("a"), buckets.secondsToFull("a")], [0.5, 1.5]);
  now = 500;
  t.equal(buckets.left("a"), 1);
  now = 60_000;
  t.strictSame([buckets.left("a"), buckets.secondsToNext("a"), buckets.secondsToFull("a")], [3, 0, 0]);
});

t.test("Tokens taken beyond the burst must refill first", async (t) => {
  let now = 0;
  const buckets = createBuckets({ perSecond: 1, burst: 2 }, { now: () => now });
  for (let count = 0; count < 5; count += 1) buckets.take("a");
  t.equal(buckets.left("a"), -3);
  t.equal(buckets.secondsToNext("a"), 4);
  now = 4_000;
  t.equal(buckets.left("a"), 1);
});

t.test("Beyond the allowed number of keys, the least recently used key is forgotten", async (t) => {
  const buckets = createBuckets({ perSecond: 1, burst: 2 }, { now: () => 0, most: 2 });
  for (const key of ["a", "b", "a", "c"]) buckets.take(key);
  t.strictSame(
    ["a", "b", "c"].map((key) => buckets.left(key)),
    [0, 2, 1],
  );
});

t.test("The buckets of 10,000 keys are kept, and one more key takes the place of the first", async (t) => {
  const buckets = createBuckets({ perSecond: 1, burst: 2 }, { now: () => 0 });
  for (let key = 0; key < 10_000; key += 1) buckets.take(String(key));
  t.equal(buckets.left("0"), 1);
  buckets.take("10000");
  t.strictSame([buckets.left("0"), buckets.left("1")], [2, 1]);
});

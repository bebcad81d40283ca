// The limits of a credential: requests per second, and wrong codes per minute. Beyond those, right codes are judged as
// before.
import { randomBytes } from "node:crypto";
import t, { type Test } from "tap";
import { newNonce } from "../../clients/typescript/src/signature.ts";
import { newRequestId } from "../support/request-id.ts";
import { defaultLimits } from "../../src/config/config.ts";
import { batchKey, makeCode } from "../../src/crypto/coupon-code.ts";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import { errors } from "../../src/http/errors.ts";
import { createWindows } from "../../src/http/minute-window.ts";
import { createLimiter } from "../../src/http/rate-limiter.ts";
import { createBuckets } from "../../src/http/token-bucket.ts";
import type { Coupon } from "../support/caller.ts";
import { sendPlain, type Reply } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { scenario } from "../support/scenario.ts";
import { stopClock } from "../support/stop-clock.ts";
import { code, lockPath, startStub } from "../support/stub.ts";

const three = { requestsPerSecond: 1, requestBurst: 3 };
const is = (t: Test, { status, json }: Reply, wantedStatus: number, code: string | undefined, what: string) =>
  t.strictSame([status, json?.code], [wantedStatus, code], what);

t.test("A bucket grants its burst at once, refills at its rate, and never holds more than the burst", async (t) => {
  let now = 0;
  const buckets = createBuckets({ perSecond: 2, burst: 3 }, () => now);
  for (const left of [3, 2, 1]) {
    t.equal(buckets.left("a"), left);
    buckets.take("a");
  }
  t.strictSame([buckets.left("a"), buckets.left("b")], [0, 3], "each key has its own bucket");
  t.strictSame([buckets.secondsToNext("a"), buckets.secondsToFull("a")], [0.5, 1.5]);
  now = 500;
  t.equal(buckets.left("a"), 1);
  for (let count = 0; count < 3; count += 1) buckets.take("a");
  t.strictSame([buckets.left("a"), buckets.secondsToNext("a")], [-2, 1.5], "more than there were must refill first");
  now = 60_000;
  t.strictSame([buckets.left("a"), buckets.secondsToNext("a"), buckets.secondsToFull("a")], [3, 0, 0]);
});

t.test("The buckets of 10,000 keys are kept; one more replaces the one that was used least recently", async (t) => {
  const buckets = createBuckets({ perSecond: 1, burst: 2 }, () => 0);
  for (let key = 0; key < 10_000; key += 1) buckets.take(String(key));
  const firstThree = () => ["0", "1", "2"].map(buckets.left);
  buckets.take("1");
  t.strictSame(firstThree(), [1, 0, 1]);
  buckets.take("10000");
  t.strictSame(firstThree(), [2, 0, 1]);
  buckets.take("0");
  t.strictSame(firstThree(), [1, 0, 2], "the one that was taken from again is not the next");
});

t.test("Beyond its limit a credential gets 429, with the time to retry and the limit itself", async (t) => {
  const { asA, asB, lock, calls, log } = await startStub(t, {}, three);
  const clock = stopClock(t);
  const first = await lock();
  fits(t, first.headers, { "ratelimit-policy": '"requests";q=3;w=3', ratelimit: /^"requests";r=2;t=1$/ });
  await lock();
  await asA.get("/v1/batches/bat_1");
  const refused = await lock();
  is(t, refused, 429, "RATE_LIMITED", "the fourth");
  fits(t, refused.headers, {
    "retry-after": "1",
    "ratelimit-policy": '"requests";q=3;w=3',
    ratelimit: '"requests";r=0;t=1',
  });
  fits(t, refused.json, { request_id: "r-1", details: { limit: "requests" } });
  fits(t, log.at(-1), { status: 429, code: "RATE_LIMITED", access_key: "ak_a", reason: "too many requests" });
  t.equal(calls.length, 3, "the refused call was not carried out");
  t.equal((await asB.get("/v1/batches/bat_1")).status, 200, "another credential is not limited");
  clock.pass(999);
  is(t, await lock(), 429, "RATE_LIMITED", "too early");
  clock.pass(1);
  is(t, await lock(), 200, undefined, "after the time to retry");
});

t.test("What is refused before the signature or the nonce is right takes nothing from the limit", async (t) => {
  const { url, asA, lock } = await startStub(t, {}, three);
  stopClock(t);
  const wrong = {
    "content-type": "application/json",
    "x-svc-access-key": "ak_a",
    "x-svc-timestamp": String(Math.floor(Date.now() / 1000)),
    "x-svc-nonce": newNonce(),
    "x-svc-signature": "0".repeat(64),
  };
  for (let count = 0; count < 10; count += 1)
    is(t, await sendPlain(url, "POST", lockPath, wrong, "{}"), 401, "UNAUTHENTICATED", "a wrong signature");
  const nonce = newNonce();
  is(t, await lock({}, { nonce }), 200, undefined, "first");
  for (let count = 0; count < 2; count += 1)
    is(t, await asA.post(lockPath, {}), 400, "INVALID_REQUEST", "a refused body counts too");
  is(t, await asA.post("/v1/coupons/nothing", {}), 404, "ROUTE_NOT_FOUND", "no route");
  is(t, await asA.post(lockPath, {}, { timestamp: "1000000000" }), 401, "TIMESTAMP_OUT_OF_WINDOW", "too old");
  is(t, await asA.post(lockPath, {}, { nonce }), 401, "NONCE_REUSED", "a nonce again");
  const other = newNonce();
  is(t, await asA.post(lockPath, {}, { nonce: other }), 429, "RATE_LIMITED", "a 429 spends its nonce");
  is(t, await asA.post(lockPath, {}, { nonce: other }), 401, "NONCE_REUSED", "the nonce is used");
});

t.test("A window allows its limit in any minute, however the takes are spread, and keeps 10,000 keys", async (t) => {
  let now = 0;
  const windows = createWindows(3, () => now);
  windows.take("a");
  now = 40_000;
  for (let count = 0; count < 2; count += 1) windows.take("a");
  const read = () => [windows.left("a"), windows.secondsToNext("a"), windows.secondsToFull("a")];
  t.strictSame(read(), [0, 20, 60]);
  now = 59_999;
  t.strictSame(read(), [0, 0.001, 40.001]);
  now = 60_000;
  t.strictSame(read(), [1, 0, 40], "the first one is a minute old");
  now = 100_000;
  t.strictSame([...read(), windows.left("b")], [3, 0, 0, 3]);

  for (let key = 0; key < 10_000; key += 1) windows.take(String(key));
  windows.take("0");
  windows.take("10000");
  t.strictSame(["0", "1", "2"].map(windows.left), [1, 3, 2], "one more replaces the one taken from least recently");
});

// A code with a valid tag that belongs to no batch, and one with a wrong tag.
const invent = (keys: MasterKeys) => makeCode(keys, "1", batchKey(keys, "1", randomBytes(16)), 1);
const mistype = (code: string) => code.slice(0, 15) + (code[15] === "7" ? "8" : "7");
const operations = ["lock", "redeem", "void", "query", "confirm", "cancel"] as const;

t.test("A fleet on one credential, with typos far beyond the limit: no right code is refused", async (t) => {
  const { lock } = await startStub(t, {}, { wrongCodesPerMinute: 3 });
  stopClock(t);
  const replies = await Promise.all(
    Array.from({ length: 600 }, async (_, store) => {
      const isTypo = store % 100 === 0;
      const more = { store: `S${store}`, ...(isTypo && { coupon: mistype(code) }) };
      const { status } = await lock({ request_id: `r-${store}`, ...more });
      return `${isTypo ? "typo" : "right"} ${status}`;
    }),
  );
  const counts = Map.groupBy(replies, (reply) => reply);
  t.strictSame(Object.fromEntries([...counts].map(([reply, { length }]) => [reply, length])), {
    "right 200": 594,
    "typo 422": 3,
    "typo 429": 3,
  });
});

t.test("600 guesses at once on one credential: as many are judged as the limits say, and no more", async (t) => {
  const { a, b, keys } = await scenario(t, { http: true });
  stopClock(t);
  for (const { till, makeCoupons } of [a, b]) {
    const [coupon] = (await makeCoupons(1)) as [Coupon];
    for (const [what, makeGuess, judged] of [
      ["wrong tags", () => mistype(coupon.code), "422"],
      ["right tags", () => invent(keys), "404"],
    ] as const) {
      const guess = (index: number) => till[operations[index % 6]!]({ ...coupon, code: makeGuess() });
      const replies = await Promise.all(Array.from({ length: 600 }, (_, index) => guess(index)));
      const counts = Map.groupBy(replies, ({ status }) => String(status));
      t.strictSame([...counts.keys()].toSorted(), [judged, "429"], what);
      t.equal(counts.get(judged)!.length, 60, `${what}: 60 in a minute, by whatever operation`);
    }
    t.equal((await till.redeem(coupon)).status, 200, "the right code is judged also then");
  }
});

// One credential with its two wrong and its two unknown codes of a minute.
async function useUpCodes(t: Test) {
  const world = await scenario(t, { http: true, limits: { wrongCodesPerMinute: 2 } });
  const { till, otherTill: second, makeCoupons } = world.a;
  const coupons = (await makeCoupons(3)) as [Coupon, Coupon, Coupon];
  const clock = stopClock(t);
  const wrong = () => ({ ...coupons[0], code: mistype(coupons[0].code) });
  const unknown = () => ({ ...coupons[0], code: invent(world.keys) });
  t.notOk("ratelimit" in (await till.query(coupons[0])).headers, "without a wrong code no header mentions the limit");
  is(t, await till.lock(wrong()), 422, "COUPON_CODE_INVALID", "wrong");
  clock.pass(15_000);
  is(t, await till.query(unknown()), 404, "NOT_FOUND", "unknown");
  const recorded = { ...unknown(), request_id: "r-unknown" };
  const { headers } = await till.redeem(recorded, { request_id: "r-unknown" });
  fits(t, headers, { "ratelimit-policy": '"wrong_codes";q=2;w=60', ratelimit: '"wrong_codes";r=0;t=60' });
  is(t, await till.confirm(wrong()), 422, "COUPON_CODE_INVALID", "wrong");
  return { world, clock, till, second, coupons, wrong, unknown, recorded };
}

t.test("Beyond the limits only codes that are no coupon's are refused, and all of them alike", async (t) => {
  const { world, clock, till, second, coupons, wrong, unknown, recorded } = await useUpCodes(t);
  const answers = new Set<string>();
  const countRequests = () => world.owner.rows("select from core.request").then(({ length }) => length);
  const before = await countRequests();
  for (const operation of operations) {
    for (const [what, coupon] of Object.entries({ wrong: wrong(), unknown: unknown() })) {
      const request_id = newRequestId();
      const reply = await till[operation](coupon, operation === "query" ? {} : { request_id });
      is(t, reply, 429, "RATE_LIMITED", `${operation}: ${what}`);
      const { "x-request-id": _, date: __, "content-length": ___, "retry-after": seconds, ...headers } = reply.headers;
      t.equal(seconds, what === "wrong" ? "45" : "60", "when the oldest one is a minute old");
      answers.add(JSON.stringify([{ ...reply.json, request_id: "" }, headers]));
      is(t, await till.get(`/v1/requests/${request_id}`), 404, "NOT_FOUND", "a 429 is not recorded");
    }
  }
  t.equal(answers.size, 1, "nothing tells wrong codes from unknown ones");
  fits(t, JSON.parse([...answers][0]!)[0].details, { limit: "wrong_codes" });
  fits(t, world.log.at(-2), { status: 429, reason: "too many unknown codes" });
  is(t, await till.redeem(recorded, { request_id: "r-unknown" }), 429, "RATE_LIMITED", "a replay counts too");
  t.equal(await countRequests(), before);
  is(t, await till.lock(wrong(), { coupon: 1 }), 400, "INVALID_REQUEST", "the body is checked first");

  const [locked, cancelled, voided] = coupons;
  for (const reply of [
    await till.query(voided),
    await till.lock(locked),
    await till.confirm(locked),
    await till.reverse(locked),
    await till.lock(cancelled),
    await till.cancel(cancelled),
    await till.void(voided),
  ])
    is(t, reply, 200, undefined, "a coupon's code is judged as always");
  is(t, await till.redeem(voided), 409, "COUPON_VOIDED", "also if the coupon is refused");
  fits(t, (await till.get("/v1/requests/r-unknown")).json.request.response, { code: "NOT_FOUND" });
  is(t, await second.lock(wrong()), 422, "COUPON_CODE_INVALID", "another credential has its own counts");

  clock.pass(45_000);
  is(t, await till.lock(wrong()), 422, "COUPON_CODE_INVALID", "the first one is a minute old");
  is(t, await till.lock(unknown()), 429, "RATE_LIMITED", "the first unknown one is not");
  clock.pass(15_000);
  const request_id = newRequestId();
  const late = unknown();
  is(t, await till.lock(late, { request_id }), 404, "NOT_FOUND", "now it is");
  const replay = await till.lock(late, { request_id });
  is(t, replay, 404, "NOT_FOUND", "recorded, as every judged write");
  t.equal(replay.headers["idempotent-replayed"], "true");
});

t.test("Without a limit, wrong codes are judged and not counted", async (t) => {
  const limiter = createLimiter({ ...defaultLimits, wrongCodesPerMinute: null });
  for (let count = 0; count < 100; count += 1)
    for (const outcome of [{ code: "COUPON_CODE_INVALID" }, { code: "NOT_FOUND", resource: "coupon" }])
      limiter.countCode("ak", outcome);
  t.equal(limiter.fields("ak"), null);
});

t.test("Only wrong and unknown codes are counted", async (t) => {
  const limiter = createLimiter({ ...defaultLimits, wrongCodesPerMinute: 1 });
  const others = Object.keys(errors).filter((code) => code !== "COUPON_CODE_INVALID");
  for (const outcome of [
    ...others.map((code) => ({ code, resource: "merchant" })),
    { code: null, resource: null },
    { code: null, resource: "coupon" },
  ])
    limiter.countCode("ak", outcome);
  t.equal(limiter.fields("ak"), null);
});

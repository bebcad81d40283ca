// The limits of a credential: requests per second, and wrong codes per minute, beyond which it learns nothing more
// about codes.
import { randomBytes } from "node:crypto";
import t, { type Test } from "tap";
import { newNonce } from "../../clients/typescript/src/signature.ts";
import { newRequestId } from "../support/request-id.ts";
import { defaultLimits } from "../../src/config/config.ts";
import { batchKey, makeCode } from "../../src/crypto/coupon-code.ts";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import { errors } from "../../src/http/errors.ts";
import type { Problem } from "../../src/http/problem.ts";
import { createLimiter } from "../../src/http/rate-limiter.ts";
import type { Reveals } from "../../src/http/route.ts";
import { createBuckets } from "../../src/http/token-bucket.ts";
import type { Coupon } from "../support/caller.ts";
import { sendPlain, type Reply } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { scenario } from "../support/scenario.ts";
import { stopClock } from "../support/stop-clock.ts";
import { lockPath, startStub } from "../support/stub.ts";

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

t.test("With the budget of wrong codes used up, an answer is sent only if it is independent of codes", async (t) => {
  const refused: string[] = [];
  const limits = { ...defaultLimits, requestsPerSecond: null, unknownCodesPerMinute: 1 };
  const limiter = createLimiter(limits, (limit) => refused.push(limit));
  const review = (reveals: Reveals, isOverBudget: boolean, code: string | null, resource: string | null = null) => {
    try {
      limiter.review("ak", reveals, isOverBudget, { code, resource });
      return "sent";
    } catch (error) {
      return (error as Problem).code;
    }
  };
  const independent = [
    "UNAUTHENTICATED",
    "NONCE_REUSED",
    "INVALID_REQUEST",
    "LOCK_EXPIRED",
    "LOCK_CANCELLED",
    "LOCK_CONFIRMED",
    "IDEMPOTENCY_KEY_REUSED",
    "REQUEST_IN_PROGRESS",
  ];
  for (const code of Object.keys(errors).filter((each) => each !== "NOT_FOUND")) {
    t.equal(review("own lock", true, code), independent.includes(code) ? "sent" : "RATE_LIMITED", code);
    t.equal(review("nothing", true, code), "sent", code);
  }
  t.equal(review("own lock", true, "NOT_FOUND", "coupon"), "RATE_LIMITED");
  t.equal(review("own lock", true, "NOT_FOUND", "merchant"), "sent");
  t.equal(review("own lock", true, null), "sent", "a success is about the caller's own lock");
  t.ok(refused.length > 0 && refused.every((limit) => limit === "unknown_codes"));

  // Only an unknown code takes from the budget, and only while there is one.
  t.equal(limiter.admit("ak", "any code"), false);
  for (const [reveals, isOver, code, resource] of [
    ["own lock", true, "NOT_FOUND", "merchant"],
    ["nothing", false, "NOT_FOUND", "coupon"],
    ["any code", false, "NOT_FOUND", "request"],
    ["any code", false, "NOT_FOUND", "merchant"],
    ["any code", false, "COUPON_EXPIRED", null],
    ["any code", false, null, null],
  ] as const)
    review(reveals, isOver, code, resource);
  t.equal(limiter.fields("ak"), null, "the budget is whole");
  t.equal(review("any code", false, "COUPON_CODE_INVALID"), "sent");
  t.equal(limiter.admit("ak", "own lock"), true);
  t.equal(limiter.admit("ak", "nothing"), true);
  t.throws(() => limiter.admit("ak", "any code"), { code: "RATE_LIMITED", details: { limit: "unknown_codes" } });
  t.equal(limiter.admit("other", "any code"), false, "another credential has its own budget");
});

// A code with a valid tag that belongs to no batch, and one with a wrong tag.
const invent = (keys: MasterKeys) => makeCode(keys, "1", batchKey(keys, "1", randomBytes(16)), 1);
const mistype = (code: string) => code.slice(0, 15) + (code[15] === "7" ? "8" : "7");

// Two locks, a redemption, and then four wrong codes: the whole budget of a minute.
async function useUpBudget(t: Test) {
  const world = await scenario(t, { http: true, limits: { unknownCodesPerMinute: 4 } });
  const { till, otherTill: second, makeCoupons } = world.a;
  const coupons = await makeCoupons(5);
  const clock = stopClock(t);
  const [locked, cancelled, redeemed, fresh, other] = coupons as [Coupon, Coupon, Coupon, Coupon, Coupon];
  const withCode = (code: string): Coupon => ({ ...fresh, code });
  const unknown = () => withCode(invent(world.keys));
  await till.ok.lock(locked);
  await till.ok.lock(cancelled);
  await till.ok.redeem(redeemed);
  const { headers } = await till.query(fresh);
  t.notOk("ratelimit" in headers, "without a wrong code no header mentions the limit");

  is(t, await till.lock(withCode(mistype(fresh.code))), 422, "COUPON_CODE_INVALID", "1");
  const invented = await till.redeem(unknown());
  is(t, invented, 404, "NOT_FOUND", "2");
  fits(t, invented.headers, {
    "ratelimit-policy": '"unknown_codes";q=4;w=60',
    ratelimit: '"unknown_codes";r=2;t=30',
  });
  is(t, await till.confirm({ ...locked, code: mistype(locked.code) }), 422, "COUPON_CODE_INVALID", "3");
  is(t, await till.query(unknown()), 404, "NOT_FOUND", "4");
  return { world, clock, till, second, locked, cancelled, redeemed, fresh, other, withCode, unknown };
}

t.test("After too many wrong codes no code is checked, right or wrong, and no body", async (t) => {
  const { world, till, second, fresh, withCode } = await useUpBudget(t);
  const request_id = newRequestId();
  const refused = await till.redeem(fresh, { request_id });
  is(t, refused, 429, "RATE_LIMITED", "redeem of a right code");
  fits(t, refused.json.details, { limit: "unknown_codes" });
  t.equal(refused.headers["retry-after"], "15", "four per minute: one in 15 s");
  for (const operation of ["lock", "redeem", "query", "void"] as const) {
    is(t, await till[operation](withCode(mistype(fresh.code))), 429, "RATE_LIMITED", operation);
    is(t, await till[operation](fresh, { coupon: 1 }), 429, "RATE_LIMITED", `${operation}: before its body is checked`);
  }
  const recorded = await world.owner.rows("select from core.request r where r.request_id = $1", [request_id]);
  t.equal(recorded.length, 0, "a 429 is not recorded");
  is(t, await second.redeem(fresh, { request_id }), 200, undefined, "so another credential can repeat the request");
});

t.test("After too many wrong codes a credential still ends its own locks, and learns nothing else", async (t) => {
  const { till, locked, cancelled, redeemed, other, withCode, unknown } = await useUpBudget(t);
  is(t, await till.confirm(locked), 200, undefined, "confirm");
  is(t, await till.cancel(cancelled), 200, undefined, "cancel");
  is(t, await till.confirm(cancelled), 409, "LOCK_CANCELLED", "its own cancelled lock");
  is(t, await till.reverse(redeemed), 200, undefined, "a reverse names no code");
  is(t, await till.get("/v1/batches/bat_none"), 404, "NOT_FOUND", "neither does this read");
  const guesses: [string, Coupon][] = [
    ["with a wrong tag", withCode(mistype(other.code))],
    ["of no batch", unknown()],
    ["of a coupon", other],
  ];
  const answers = new Set<string>();
  for (const [what, coupon] of guesses) {
    for (const operation of ["confirm", "cancel"] as const) {
      const reply = await till[operation](coupon);
      is(t, reply, 429, "RATE_LIMITED", `${operation} with a code ${what}`);
      answers.add(JSON.stringify([{ ...reply.json, request_id: "" }, Object.keys(reply.headers).sort()]));
    }
  }
  t.equal(answers.size, 1, "the answers do not tell which codes exist");
});

t.test("get_request shows a result only to a credential that may still try codes, and it counts", async (t) => {
  const { clock, till, second, locked, other, unknown } = await useUpBudget(t);
  const guess = async (coupon: Coupon) => {
    const request_id = newRequestId();
    is(t, await till.confirm(coupon, { request_id }), 429, "RATE_LIMITED", "a guess");
    return `/v1/requests/${request_id}`;
  };
  const [first, another, known] = [await guess(unknown()), await guess(unknown()), await guess(other)];
  const own = `/v1/requests/${locked.lockRequestId}`;
  const answers = new Set<string>();
  for (const path of [first, another, known, own, "/v1/requests/never-sent"]) {
    const reply = await till.get(path);
    is(t, reply, 429, "RATE_LIMITED", path);
    answers.add(JSON.stringify({ ...reply.json, request_id: "" }));
  }
  t.equal(answers.size, 1, "the answers do not tell which codes exist");

  const shown = await second.get(first);
  fits(t, shown.json.request.response, { code: "NOT_FOUND", details: { resource: "coupon" } });
  fits(t, shown.headers, { ratelimit: '"unknown_codes";r=3;t=15' }, "another credential of the caller pays for it");
  // One code becomes free.
  clock.pass(15_000);
  t.equal((await till.get(own)).json.request.http_status, 200, "the lost answer of a lock");
  t.equal((await till.get(known)).json.request.response.code, "LOCK_NOT_FOUND", "a result about a coupon that exists");
  t.equal((await till.get(first)).json.request.response.code, "NOT_FOUND", "the first unknown code");
  is(t, await till.get(another), 429, "RATE_LIMITED", "the second unknown code");
});

t.test("A replayed refusal counts like the first one", async (t) => {
  const world = await scenario(t, { http: true, limits: { unknownCodesPerMinute: 2 } });
  const redeem = () => world.a.till.redeem({ ...coupon }, { request_id: "r-1" });
  const coupon: Coupon = { code: invent(world.keys), id: "", lockRequestId: "", redemption: "" };
  is(t, await redeem(), 404, "NOT_FOUND", "first");
  const replay = await redeem();
  is(t, replay, 404, "NOT_FOUND", "replayed");
  fits(t, replay.headers, { "idempotent-replayed": "true", ratelimit: /^"unknown_codes";r=0;/ });
  is(t, await redeem(), 429, "RATE_LIMITED", "the budget is used up");
});

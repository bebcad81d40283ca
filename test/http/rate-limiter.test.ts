// The limits of a credential: requests per second, and which answers take from the budget of wrong codes.
import { randomBytes } from "node:crypto";
import t, { type Test } from "tap";
import { defaultLimits } from "../../src/config/config.ts";
import { errors } from "../../src/http/errors.ts";
import type { Problem } from "../../src/http/problem.ts";
import { createLimiter } from "../../src/http/rate-limiter.ts";
import type { Reveals } from "../../src/http/route.ts";
import { sendPlain, type Reply } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { stopClock } from "../support/stop-clock.ts";
import { bodies, startStub } from "../support/stub.ts";

const lockPath = "/v1/coupons/lock";
const is = (t: Test, { status, json }: Reply, wantedStatus: number, code: string | undefined, what: string) =>
  t.strictSame([status, json?.code], [wantedStatus, code], what);
const three = { requestsPerSecond: 1, requestBurst: 3 };

t.test("Beyond its limit a credential gets 429, with the time to retry and the limit itself", async (t) => {
  const { asA, asB, calls, log } = await startStub(t, {}, three);
  const clock = stopClock(t);
  const first = await asA.post(lockPath, bodies[lockPath]);
  fits(t, first.headers, { "ratelimit-policy": '"requests";q=3;w=3', ratelimit: /^"requests";r=2;t=1$/ });
  await asA.post(lockPath, bodies[lockPath]);
  await asA.get("/v1/batches/bat_1");
  const refused = await asA.post(lockPath, bodies[lockPath]);
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
  is(t, await asA.post(lockPath, bodies[lockPath]), 429, "RATE_LIMITED", "too early");
  clock.pass(1);
  is(t, await asA.post(lockPath, bodies[lockPath]), 200, undefined, "after the time to retry");
});

t.test("401 comes before 429, and 429 before 400; badly signed requests count against no credential", async (t) => {
  const { url, asA } = await startStub(t, {}, three);
  stopClock(t);
  const wrong = {
    "content-type": "application/json",
    "x-svc-access-key": "ak_a",
    "x-svc-timestamp": String(Math.floor(Date.now() / 1000)),
    "x-svc-nonce": "0123456789abcdef",
    "x-svc-signature": "0".repeat(64),
  };
  for (let count = 0; count < 10; count += 1)
    is(t, await sendPlain(url, "POST", lockPath, wrong, "{}"), 401, "UNAUTHENTICATED", "a wrong signature");
  const nonce = randomBytes(12).toString("hex");
  is(t, await asA.post(lockPath, bodies[lockPath], { nonce }), 200, undefined, "first");
  for (let count = 0; count < 2; count += 1)
    is(t, await asA.post(lockPath, {}), 400, "INVALID_REQUEST", "a refused body counts too");
  is(t, await asA.post("/v1/coupons/nothing", {}), 404, "ROUTE_NOT_FOUND", "no route");
  is(t, await asA.post(lockPath, "x".repeat(70_000)), 413, "PAYLOAD_TOO_LARGE", "too large");
  is(
    t,
    await asA.post(lockPath, {}, { headers: { "content-type": "text/plain" } }),
    415,
    "UNSUPPORTED_MEDIA_TYPE",
    "no JSON",
  );
  is(t, await asA.post(lockPath, {}, { timestamp: "1000000000" }), 401, "TIMESTAMP_OUT_OF_WINDOW", "too old");
  is(t, await asA.post(lockPath, {}, { nonce }), 401, "NONCE_REUSED", "a nonce again");
  is(t, await asA.post(lockPath, {}), 429, "RATE_LIMITED", "a malformed body");
  const other = randomBytes(12).toString("hex");
  is(t, await asA.post(lockPath, {}, { nonce: other }), 429, "RATE_LIMITED", "a 429 spends its nonce");
  is(t, await asA.post(lockPath, {}, { nonce: other }), 401, "NONCE_REUSED", "the nonce is used");
});

t.test("Without RATE_LIMIT nothing is refused and no header mentions limits", async (t) => {
  const { asA } = await startStub(t);
  const replies = await Promise.all(Array.from({ length: 200 }, () => asA.get("/v1/batches/bat_1")));
  t.ok(
    replies.every(
      ({ status, headers }) => status === 200 && !("ratelimit" in headers) && !("ratelimit-policy" in headers),
    ),
  );
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
  for (const code of Object.keys(errors)) {
    if (code === "NOT_FOUND") continue;
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

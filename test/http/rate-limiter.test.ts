// The limits of a credential: requests per second, and wrong codes per minute.
import { randomBytes } from "node:crypto";
import t, { type Test } from "tap";
import { defaultLimits } from "../../src/common/config.ts";
import { batchKey, makeCode } from "../../src/crypto/coupon-code.ts";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import { errors } from "../../src/http/errors.ts";
import type { Problem } from "../../src/http/problem.ts";
import { createLimiter } from "../../src/http/rate-limiter.ts";
import type { Reveals } from "../../src/http/route.ts";
import { sendPlain, type Client, type Reply } from "../support/client.ts";
import { document } from "../support/provisioning.ts";
import { newRequestId, startService } from "../support/service.ts";
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
  t.match(first.headers, { "ratelimit-policy": '"requests";q=3;w=3', ratelimit: /^"requests";r=2;t=1$/ });
  await asA.post(lockPath, bodies[lockPath]);
  await asA.get("/v1/batches/bat_1");
  const refused = await asA.post(lockPath, bodies[lockPath]);
  is(t, refused, 429, "RATE_LIMITED", "the fourth");
  t.match(refused.headers, {
    "retry-after": "1",
    "ratelimit-policy": '"requests";q=3;w=3',
    ratelimit: '"requests";r=0;t=1',
  });
  t.match(refused.json, { request_id: "r-1", details: { limit: "requests" } });
  t.match(log.at(-1), { status: 429, code: "RATE_LIMITED", access_key: "ak_a", reason: "too many requests" });
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

// A code with a valid tag that belongs to no batch.
const invent = (keys: MasterKeys) => makeCode(keys, "1", batchKey(keys, "1", randomBytes(16)), 1);
const mistype = (code: string) => code.slice(0, 15) + (code[15] === "7" ? "8" : "7");

const send = (by: Client, path: string, body: object) =>
  by.post(`/v1/${path}`, { request_id: newRequestId(), ...body });
const merchant = "mch_a";

// Two locks, a redemption, and then four wrong codes: the whole budget of a minute.
async function useUpBudget(t: Test) {
  const service = await startService(t, document, {}, { unknownCodesPerMinute: 4 });
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_fixed", 6);
  stopClock(t);
  const [locked, cancelled, redeemed, fresh, other] = codes as [string, string, string, string, string];
  const [lockId, cancelId] = [newRequestId(), newRequestId()];
  is(t, await send(a, "coupons/lock", { request_id: lockId, coupon: locked, merchant }), 200, undefined, "lock");
  is(t, await send(a, "coupons/lock", { request_id: cancelId, coupon: cancelled, merchant }), 200, undefined, "lock");
  const { redemption } = (await send(a, "coupons/redeem", { coupon: redeemed, merchant })).json;
  const { headers } = await send(a, "coupons/query", { coupon: fresh, merchant });
  t.notOk("ratelimit" in headers, "without a wrong code no header mentions the limit");

  is(t, await send(a, "coupons/lock", { coupon: mistype(fresh), merchant }), 422, "COUPON_CODE_INVALID", "1");
  const invented = await send(a, "coupons/redeem", { coupon: invent(service.keys), merchant });
  is(t, invented, 404, "NOT_FOUND", "2");
  t.match(invented.headers, {
    "ratelimit-policy": '"unknown_codes";q=4;w=60',
    ratelimit: '"unknown_codes";r=2;t=30',
  });
  const confirm = { coupon: mistype(locked), merchant, lock_request_id: lockId };
  is(t, await send(a, "coupons/confirm", confirm), 422, "COUPON_CODE_INVALID", "3");
  is(t, await send(a, "coupons/query", { coupon: invent(service.keys), merchant }), 404, "NOT_FOUND", "4");
  return { service, a, locked, cancelled, fresh, other, lockId, cancelId, redemption };
}

t.test("After too many wrong codes no code is checked, right or wrong, and no body", async (t) => {
  const { service, a, fresh } = await useUpBudget(t);
  const refusedId = newRequestId();
  const refused = await send(a, "coupons/redeem", { request_id: refusedId, coupon: fresh, merchant });
  is(t, refused, 429, "RATE_LIMITED", "redeem of a right code");
  t.match(refused.json.details, { limit: "unknown_codes" });
  t.equal(refused.headers["retry-after"], "15", "four per minute: one in 15 s");
  for (const path of ["lock", "redeem", "query", "void"]) {
    is(t, await send(a, `coupons/${path}`, { coupon: mistype(fresh), merchant }), 429, "RATE_LIMITED", path);
    is(t, await send(a, `coupons/${path}`, { coupon: 1 }), 429, "RATE_LIMITED", `${path}: before its body is checked`);
  }
  const recorded = await service.owner.rows("select from core.request r where r.request_id = $1", [refusedId]);
  t.equal(recorded.length, 0, "a 429 is not recorded");
  const retry = { request_id: refusedId, coupon: fresh, merchant };
  is(
    t,
    await send(service.as("ak_a_second"), "coupons/redeem", retry),
    200,
    undefined,
    "so the same request succeeds later, or with another credential of the caller",
  );
});

t.test("After too many wrong codes a credential still ends its own locks, and learns nothing else", async (t) => {
  const { service, a, locked, cancelled, other, lockId, cancelId, redemption } = await useUpBudget(t);
  const confirm = { coupon: locked, merchant, lock_request_id: lockId };
  const cancel = { coupon: cancelled, lock_request_id: cancelId };
  is(t, await send(a, "coupons/confirm", confirm), 200, undefined, "confirm");
  is(t, await send(a, "coupons/cancel", cancel), 200, undefined, "cancel");
  is(t, await send(a, "coupons/confirm", { ...cancel, merchant }), 409, "LOCK_CANCELLED", "its own cancelled lock");
  is(t, await send(a, "redemptions/reverse", { redemption }), 200, undefined, "a reverse names no code");
  t.equal((await a.get(`/v1/requests/${lockId}`)).status, 200, "neither does this read");
  const guesses: [string, string][] = [
    ["with a wrong tag", mistype(other)],
    ["of no batch", invent(service.keys)],
    ["of a coupon", other],
  ];
  const answers = new Set<string>();
  for (const [what, coupon] of guesses) {
    for (const operation of ["confirm", "cancel"]) {
      const body = { coupon, lock_request_id: "none", ...(operation === "confirm" && { merchant }) };
      const reply = await send(a, `coupons/${operation}`, body);
      is(t, reply, 429, "RATE_LIMITED", `${operation} with a code ${what}`);
      answers.add(JSON.stringify([{ ...reply.json, request_id: "" }, Object.keys(reply.headers).sort()]));
    }
  }
  t.equal(answers.size, 1, "the answers do not tell which codes exist");
});

t.test("A replayed refusal counts like the first one", async (t) => {
  const service = await startService(t, document, {}, { unknownCodesPerMinute: 2 });
  const a = service.as("ak_a");
  const body = { request_id: newRequestId(), coupon: invent(service.keys), merchant: "mch_a" };
  is(t, await a.post("/v1/coupons/redeem", body), 404, "NOT_FOUND", "first");
  const replay = await a.post("/v1/coupons/redeem", body);
  is(t, replay, 404, "NOT_FOUND", "replayed");
  t.match(replay.headers, { "idempotent-replayed": "true", ratelimit: /^"unknown_codes";r=0;/ });
  is(t, await a.post("/v1/coupons/redeem", body), 429, "RATE_LIMITED", "the budget is used up");
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
    ["any code", false, "NOT_FOUND", "merchant"],
    ["any code", false, "COUPON_EXPIRED", "coupon"],
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

// What one credential may ask: requests a second, and codes that are not there.
import { randomBytes } from "node:crypto";
import t, { type Test } from "tap";
import { createBuckets } from "../../src/http/token-bucket.ts";
import { batchKey, makeCode } from "../../src/crypto/coupon-code.ts";
import { ConfigError, defaultLimits, readConfig } from "../../src/common/config.ts";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import { sendPlain, type Reply } from "../support/client.ts";
import { document } from "../support/provisioning.ts";
import { newRequestId, startService } from "../support/service.ts";
import { bodies, startStub } from "../support/stub.ts";

const lockPath = "/v1/coupons/lock";
const is = (t: Test, { status, json }: Reply, wantedStatus: number, code: string | undefined, what: string) =>
  t.strictSame([status, json?.code], [wantedStatus, code], what);
// Too slow to fill up again during a test.
const slow = { requestsPerSecond: 1, requestBurst: 3 };

t.test("a bucket gives its burst at once, fills up again at its rate, and never beyond the burst", async (t) => {
  let now = 0;
  const buckets = createBuckets({ perSecond: 2, burst: 3 }, { now: () => now });
  for (const left of [3, 2, 1]) {
    t.equal(buckets.left("a"), left);
    buckets.take("a");
  }
  t.strictSame([buckets.left("a"), buckets.left("b")], [0, 3], "one key is no other's");
  t.strictSame([buckets.secondsToNext("a"), buckets.secondsToFull("a")], [0.5, 1.5]);
  now = 500;
  t.equal(buckets.left("a"), 1);
  now = 60_000;
  t.strictSame([buckets.left("a"), buckets.secondsToNext("a"), buckets.secondsToFull("a")], [3, 0, 0]);
});

t.test("what was taken beyond the burst has to fill up first", async (t) => {
  let now = 0;
  const buckets = createBuckets({ perSecond: 1, burst: 2 }, { now: () => now });
  for (let count = 0; count < 5; count += 1) buckets.take("a");
  t.equal(buckets.left("a"), -3);
  t.equal(buckets.secondsToNext("a"), 4);
  now = 4_000;
  t.equal(buckets.left("a"), 1);
});

t.test("no more keys are kept than allowed: who took longest ago is forgotten", async (t) => {
  const buckets = createBuckets({ perSecond: 1, burst: 2 }, { now: () => 0, most: 2 });
  for (const key of ["a", "b", "a", "c"]) buckets.take(key);
  t.strictSame(
    ["a", "b", "c"].map((key) => buckets.left(key)),
    [0, 2, 1],
  );
});

t.test("beyond its requests a credential is told 429, when to come again, and how much there is", async (t) => {
  const { asA, asB, calls, log } = await startStub(t, {}, slow);
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
  t.equal(calls.length, 3, "nothing of it was carried out");
  t.equal((await asB.get("/v1/batches/bat_1")).status, 200, "another credential goes on");
});

t.test("a 429 stands behind 401 and before 400, and who is not the credential uses nothing of it up", async (t) => {
  const { url, asA } = await startStub(t, {}, slow);
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
    is(t, await asA.post(lockPath, {}), 400, "INVALID_REQUEST", "which counts too");
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
  is(t, await asA.post(lockPath, {}, { nonce: other }), 429, "RATE_LIMITED", "which spends its nonce");
  is(t, await asA.post(lockPath, {}, { nonce: other }), 401, "NONCE_REUSED", "like any other");
});

t.test("without RATE_LIMIT nobody is refused and no header speaks of limits", async (t) => {
  const { asA } = await startStub(t);
  const replies = await Promise.all(Array.from({ length: 200 }, () => asA.get("/v1/batches/bat_1")));
  t.ok(
    replies.every(
      ({ status, headers }) => status === 200 && !("ratelimit" in headers) && !("ratelimit-policy" in headers),
    ),
  );
});

// Right by its tag, and of no batch.
const invent = (keys: MasterKeys) => makeCode(keys, "1", batchKey(keys, "1", randomBytes(16)), 1);
const mistype = (code: string) => code.slice(0, 15) + (code[15] === "7" ? "8" : "7");

t.test("who gets too many codes wrong has no more codes judged, but ends what it began", async (t) => {
  const service = await startService(t, document, {}, { unknownCodesPerMinute: 4 });
  const [a, second] = [service.as("ak_a"), service.as("ak_a_second")];
  const { codes } = await service.makeBatch(a, "tpl_fixed", 6);
  const [locked, cancelled, redeemed, fresh, other] = codes as [string, string, string, string, string];
  const send = (path: string, body: object, by = a) => by.post(`/v1/${path}`, { request_id: newRequestId(), ...body });
  const merchant = "mch_a";
  const [lockId, cancelId] = [newRequestId(), newRequestId()];
  for (const [request_id, coupon] of [
    [lockId, locked],
    [cancelId, cancelled],
  ])
    is(t, await send("coupons/lock", { request_id, coupon, merchant }), 200, undefined, "locked");
  const {
    json: { redemption },
  } = await send("coupons/redeem", { coupon: redeemed, merchant });
  t.notOk(
    "ratelimit" in (await send("coupons/query", { coupon: fresh, merchant })).headers,
    "who gets none wrong is not told of the limit",
  );

  // mistyped and invented ones, in several operations: each counts
  is(t, await send("coupons/lock", { coupon: mistype(fresh), merchant }), 422, "COUPON_CODE_INVALID", "1");
  const invented = await send("coupons/redeem", { coupon: invent(service.keys), merchant });
  is(t, invented, 404, "NOT_FOUND", "2");
  t.match(invented.headers, {
    "ratelimit-policy": '"unknown_codes";q=4;w=60',
    ratelimit: /^"unknown_codes";r=2;t=\d+$/,
  });
  is(
    t,
    await send("coupons/confirm", { coupon: mistype(locked), merchant, lock_request_id: lockId }),
    422,
    "COUPON_CODE_INVALID",
    "3",
  );
  is(t, await send("coupons/query", { coupon: invent(service.keys), merchant }), 404, "NOT_FOUND", "4");

  // neither a right code is judged now nor a wrong one, nor a body
  const refusedId = newRequestId();
  const refused = await send("coupons/redeem", { request_id: refusedId, coupon: fresh, merchant });
  is(t, refused, 429, "RATE_LIMITED", "redeem of a right code");
  t.match(refused.json.details, { limit: "unknown_codes" });
  t.ok(
    Number(refused.headers["retry-after"]) >= 10 && Number(refused.headers["retry-after"]) <= 15,
    "four a minute: one in 15 s",
  );
  for (const path of ["lock", "redeem", "query", "void"]) {
    is(t, await send(`coupons/${path}`, { coupon: mistype(fresh), merchant }), 429, "RATE_LIMITED", path);
    is(t, await send(`coupons/${path}`, { coupon: 1 }), 429, "RATE_LIMITED", `${path}: before its shape`);
  }
  t.equal(
    (await service.owner.rows("select from core.request r where r.request_id = $1", [refusedId])).length,
    0,
    "a 429 is not recorded",
  );
  is(
    t,
    await send("coupons/redeem", { request_id: refusedId, coupon: fresh, merchant }, second),
    200,
    undefined,
    "so the same request succeeds later, or by another credential of the caller",
  );

  // what it holds is ended; what is not about its locks is not told
  is(
    t,
    await send("coupons/confirm", { coupon: locked, merchant, lock_request_id: lockId }),
    200,
    undefined,
    "confirm",
  );
  is(t, await send("coupons/cancel", { coupon: cancelled, lock_request_id: cancelId }), 200, undefined, "cancel");
  is(
    t,
    await send("coupons/confirm", { coupon: cancelled, merchant, lock_request_id: cancelId }),
    409,
    "LOCK_CANCELLED",
    "of a lock it had",
  );
  is(t, await send("redemptions/reverse", { redemption }), 200, undefined, "reverse names no code");
  t.equal((await a.get(`/v1/requests/${lockId}`)).status, 200, "nor does a read");
  const guesses: [string, string][] = [
    ["of no key of ours", mistype(other)],
    ["of no batch", invent(service.keys)],
    ["of a coupon", other],
  ];
  const told = new Set<string>();
  for (const [what, coupon] of guesses) {
    for (const operation of ["confirm", "cancel"]) {
      const reply = await send(`coupons/${operation}`, {
        coupon,
        lock_request_id: "none",
        ...(operation === "confirm" && { merchant }),
      });
      is(t, reply, 429, "RATE_LIMITED", `${operation} with a code ${what}`);
      told.add(JSON.stringify([{ ...reply.json, request_id: "" }, Object.keys(reply.headers).sort()]));
    }
  }
  t.equal(told.size, 1, "so nothing tells which codes there are");
});

t.test("a replayed refusal counts like the first one", async (t) => {
  const service = await startService(t, document, {}, { unknownCodesPerMinute: 2 });
  const a = service.as("ak_a");
  const body = { request_id: newRequestId(), coupon: invent(service.keys), merchant: "mch_a" };
  is(t, await a.post("/v1/coupons/redeem", body), 404, "NOT_FOUND", "first");
  const replay = await a.post("/v1/coupons/redeem", body);
  is(t, replay, 404, "NOT_FOUND", "replayed");
  t.match(replay.headers, { "idempotent-replayed": "true", ratelimit: /^"unknown_codes";r=0;/ });
  is(t, await a.post("/v1/coupons/redeem", body), 429, "RATE_LIMITED", "the budget is used up");
});

t.test("the settings of limits are numbers in their bounds, and 0 is none", async (t) => {
  t.same(readConfig({}).limits, defaultLimits);
  t.match(defaultLimits, {
    bodyBytes: 65_536,
    headerBytes: 16_384,
    requestsPerSecond: null,
    unknownCodesPerMinute: 60,
  });
  t.match(readConfig({ RATE_LIMIT: "50", UNKNOWN_CODE_LIMIT: "0", MAX_CONNECTIONS: "9" }).limits, {
    requestsPerSecond: 50,
    requestBurst: 50,
    unknownCodesPerMinute: null,
    connections: 9,
  });
  for (const wrong of [
    { RATE_LIMIT: "-1" },
    { RATE_LIMIT: "1.5" },
    { MAX_BODY_BYTES: "10" },
    { MAX_CONNECTIONS: "0" },
    { KEEP_ALIVE_TIMEOUT_SECONDS: "soon" },
    { HEADERS_TIMEOUT_SECONDS: "60" },
  ]) {
    t.throws(() => readConfig(wrong), ConfigError, JSON.stringify(wrong));
  }
});

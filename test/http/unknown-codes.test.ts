// The limit of wrong codes per minute, with the database: a credential that has used it up learns nothing about codes.
import { randomBytes } from "node:crypto";
import t, { type Test } from "tap";
import { batchKey, makeCode } from "../../src/crypto/coupon-code.ts";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import type { Client, Reply } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { document } from "../support/tenants.ts";
import { newRequestId, startService } from "../support/service.ts";
import { stopClock } from "../support/stop-clock.ts";

const is = (t: Test, { status, json }: Reply, wantedStatus: number, code: string | undefined, what: string) =>
  t.strictSame([status, json?.code], [wantedStatus, code], what);

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
  const clock = stopClock(t);
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
  fits(t, invented.headers, {
    "ratelimit-policy": '"unknown_codes";q=4;w=60',
    ratelimit: '"unknown_codes";r=2;t=30',
  });
  const confirm = { coupon: mistype(locked), merchant, lock_request_id: lockId };
  is(t, await send(a, "coupons/confirm", confirm), 422, "COUPON_CODE_INVALID", "3");
  is(t, await send(a, "coupons/query", { coupon: invent(service.keys), merchant }), 404, "NOT_FOUND", "4");
  return { service, clock, a, locked, cancelled, fresh, other, lockId, cancelId, redemption };
}

t.test("After too many wrong codes no code is checked, right or wrong, and no body", async (t) => {
  const { service, a, fresh } = await useUpBudget(t);
  const refusedId = newRequestId();
  const refused = await send(a, "coupons/redeem", { request_id: refusedId, coupon: fresh, merchant });
  is(t, refused, 429, "RATE_LIMITED", "redeem of a right code");
  fits(t, refused.json.details, { limit: "unknown_codes" });
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
  is(t, await a.get("/v1/batches/bat_none"), 404, "NOT_FOUND", "neither does this read");
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

t.test("get_request shows a result only to a credential that may still try codes, and it counts", async (t) => {
  const { service, clock, a, other, lockId } = await useUpBudget(t);
  const guess = async (coupon: string) => {
    const request_id = newRequestId();
    const body = { request_id, coupon, merchant, lock_request_id: "none" };
    is(t, await send(a, "coupons/confirm", body), 429, "RATE_LIMITED", "a guess");
    return `/v1/requests/${request_id}`;
  };
  const unknown = [await guess(invent(service.keys)), await guess(invent(service.keys))] as const;
  const known = await guess(other);
  const answers = new Set<string>();
  for (const path of [...unknown, known, `/v1/requests/${lockId}`, "/v1/requests/never-sent"]) {
    const reply = await a.get(path);
    is(t, reply, 429, "RATE_LIMITED", path);
    answers.add(JSON.stringify({ ...reply.json, request_id: "" }));
  }
  t.equal(answers.size, 1, "the answers do not tell which codes exist");

  const second = await service.as("ak_a_second").get(unknown[0]);
  fits(t, second.json.request.response, { code: "NOT_FOUND", details: { resource: "coupon" } });
  fits(t, second.headers, { ratelimit: '"unknown_codes";r=3;t=15' }, "another credential of the caller pays for it");
  // One code becomes free.
  clock.pass(15_000);
  t.equal((await a.get(`/v1/requests/${lockId}`)).json.request.http_status, 200, "the lost answer of a lock");
  t.equal((await a.get(known)).json.request.response.code, "LOCK_NOT_FOUND", "a result about a coupon that exists");
  t.equal((await a.get(unknown[0])).json.request.response.code, "NOT_FOUND", "the first unknown code");
  is(t, await a.get(unknown[1]), 429, "RATE_LIMITED", "the second unknown code");
});

t.test("A replayed refusal counts like the first one", async (t) => {
  const service = await startService(t, document, {}, { unknownCodesPerMinute: 2 });
  const a = service.as("ak_a");
  const body = { request_id: newRequestId(), coupon: invent(service.keys), merchant: "mch_a" };
  is(t, await a.post("/v1/coupons/redeem", body), 404, "NOT_FOUND", "first");
  const replay = await a.post("/v1/coupons/redeem", body);
  is(t, replay, 404, "NOT_FOUND", "replayed");
  fits(t, replay.headers, { "idempotent-replayed": "true", ratelimit: /^"unknown_codes";r=0;/ });
  is(t, await a.post("/v1/coupons/redeem", body), 429, "RATE_LIMITED", "the budget is used up");
});

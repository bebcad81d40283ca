// What an error says about the outcome of a write.
import t from "tap";
import type { RefusedError, UnansweredError } from "../../clients/typescript/src/index.ts";
import { answer, cut, fail, refusal, start, type Script } from "./scripted-service.ts";

const body = { request_id: "r-1", coupon: "0123456789ABCDEF", merchant: "mch_1" };

t.test("An error says whether the write may have taken effect: an unrecorded refusal leaves that open", async (t) => {
  const late = { "retry-after": "99" };
  const cases: [Script[], boolean][] = [
    [[refusal(409, "COUPON_LOCKED")], false],
    [[refusal(429, "RATE_LIMITED", null, late)], false],
    [[refusal(401, "UNAUTHENTICATED")], false],
    [[refusal(409, "REQUEST_IN_PROGRESS", null, late)], true],
    [[refusal(503, "UNAVAILABLE", null, late)], true],
    [[refusal(500, "INTERNAL_ERROR", null, late)], true],
    [[answer(502, {}, late)], true],
    [[cut, refusal(409, "COUPON_LOCKED")], false],
    [[cut, refusal(404, "NOT_FOUND")], false],
    [[cut, refusal(404, "ROUTE_NOT_FOUND")], true],
    [[cut, refusal(400, "INVALID_REQUEST")], true],
    [[cut, refusal(401, "UNAUTHENTICATED")], true],
    [[cut, refusal(422, "COUPON_CODE_INVALID")], true],
    [[cut, refusal(422, "IDEMPOTENCY_KEY_REUSED")], true],
    [[cut, refusal(429, "RATE_LIMITED", null, late)], true],
    [[refusal(503, "UNAVAILABLE"), refusal(429, "RATE_LIMITED", null, late)], true],
    [[refusal(429, "RATE_LIMITED"), refusal(401, "UNAUTHENTICATED")], false],
    [[refusal(401, "NONCE_REUSED"), refusal(429, "RATE_LIMITED", null, late)], true],
    [[refusal(401, "NONCE_REUSED"), refusal(409, "COUPON_LOCKED")], false],
    [[cut, refusal(403, "OF_A_GATEWAY")], true],
  ];
  const tryOne = async ([scripts, expected]: [Script[], boolean], index: number) => {
    const { client, received } = await start(t, scripts);
    const error = await fail(client.redeem(body));
    t.equal(received.length, scripts.length, `case ${index}`);
    t.equal((error as RefusedError | UnansweredError).mayHaveTakenEffect, expected, `case ${index}`);
  };
  await Promise.all(cases.map(tryOne));
});

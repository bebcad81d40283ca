// The requests for a coupon: the same redemption as an HTTP request and as a call of gate.perform.
import { randomBytes, randomUUID } from "node:crypto";
import { hashBody } from "../../src/crypto/body-hash.ts";
import type { Call } from "../../src/gate/gate.ts";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import type { Request } from "./load.ts";
import { merchants } from "./tenant.ts";

export type Coupon = { number: number; code: string; lookup: string };
type Body = { request_id: string; coupon: string } & Record<string, unknown>;

// As long as a UUID. By chance, one UUID in a million looks like a code. The letter u, which no code has, prevents it.
const newRequestId = (): string => randomUUID().replaceAll("-", "u");

// All fields that a till sends.
function redeemBody({ code, number }: Coupon): Body {
  return {
    request_id: newRequestId(),
    coupon: code,
    merchant: merchants[number % merchants.length]!,
    store: `store ${number % 900}`,
    terminal: `till ${number % 7}`,
    order_amount: (2_000 + (number % 8_000)) / 100,
    order_id: String(100_000 + number),
  };
}

const ok = '{"ok":true';

export function redeemRequest(coupon: Coupon): Request {
  return { method: "POST", target: "/v1/coupons/redeem", body: JSON.stringify(redeemBody(coupon)), expected: ok };
}

export function queryRequest({ code, number }: Coupon): Request {
  const body = { coupon: code, merchant: merchants[number % merchants.length]! };
  return { method: "POST", target: "/v1/coupons/query", body: JSON.stringify(body), expected: ok };
}

export function lockAndConfirm(coupon: Coupon): Request[] {
  const lock = redeemBody(coupon);
  const confirm = {
    request_id: newRequestId(),
    lock_request_id: lock.request_id,
    coupon: lock.coupon,
    merchant: lock["merchant"],
  };
  return [
    { method: "POST", target: "/v1/coupons/lock", body: JSON.stringify(lock), expected: ok },
    { method: "POST", target: "/v1/coupons/confirm", body: JSON.stringify(confirm), expected: ok },
  ];
}

// The call that the HTTP layer makes of redeemRequest, with a new nonce.
export function redeemCall(coupon: Coupon, credentialId: number, keys: MasterKeys): Call {
  const body = redeemBody(coupon);
  const { request_id, ...args } = body;
  return {
    credential_id: credentialId,
    nonce: randomBytes(12).toString("base64url"),
    operation: "redeem",
    request_id,
    idempotency_key: null,
    body_hash: hashBody(keys, body),
    args: { ...args, coupon: coupon.lookup },
  };
}

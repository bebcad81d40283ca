// Released coupons in random order, each drawn once, and what a till sends to redeem one. A coupon's code is derived
// when the coupon is drawn.
import { randomBytes, randomInt, randomUUID } from "node:crypto";
import { hashBody } from "../../../src/crypto/body-hash.ts";
import { batchKey, lookupHash, makeCode } from "../../../src/crypto/coupon-code.ts";
import type { Call } from "../../../src/gate/gate.ts";
import { merchants, type Environment } from "./environment.ts";

/** `body` is what a till sends. */
export type Coupon = { lookup: string; body: ReturnType<typeof makeBody> };
export type Pool = { draw(count: number): Promise<Coupon[]> };

const pageSize = 5_000;

/** Mints another batch of this size when one is used up. */
export async function openPool(environment: Environment, size: number): Promise<Pool> {
  const openNext = async () => openBatch(environment, await environment.release(size));
  let batch = await openNext();
  return {
    async draw(count) {
      const coupons: Coupon[] = [];
      while (coupons.length < count) {
        if (batch.left() === 0) batch = await openNext();
        coupons.push(...(await batch.take(Math.min(pageSize, count - coupons.length))));
      }
      return coupons;
    },
  };
}

async function openBatch({ database, keys }: Environment, batch: string) {
  const [found] = await database.rows<{ batch_id: number; salt: Uint8Array; key_version: string; total_count: number }>(
    "select batch_id, salt, key_version, total_count from core.batch where external_id = $1",
    [batch],
  );
  const { batch_id, salt, key_version, total_count } = found!;
  const key = batchKey(keys, key_version, salt);
  const numbers = Uint32Array.from({ length: total_count }, (_, index) => index + 1);
  let left = total_count;

  // Shuffles step by step, because a run draws few of ten million coupons.
  function drawNumber(): number {
    const at = randomInt(left);
    const number = numbers[at]!;
    left -= 1;
    numbers[at] = numbers[left]!;
    return number;
  }

  // Returns fewer coupons when some of them are already redeemed.
  async function take(most: number): Promise<Coupon[]> {
    const drawn = Array.from({ length: Math.min(most, left) }, drawNumber);
    const rows = await database.rows<{ number: number; code_attempt: number; lookup: string }>(
      `select c.number, c.code_attempt, c.lookup_hash::text as lookup
       from core.coupon c
       where c.batch_id = $1 and c.number = any ($2::int[]) and c.status = 'ISSUED'
       order by random()`,
      [batch_id, drawn],
    );
    return rows.map(({ number, code_attempt, lookup }) => {
      const code = makeCode(keys, key_version, key, number, code_attempt);
      if (lookupHash(keys, code) !== lookup) throw new Error("the derived code is not the coupon's code");
      return { lookup, body: makeBody(number, code) };
    });
  }

  return { take, left: () => left };
}

/** With all fields that a till sends. */
function makeBody(number: number, code: string) {
  return {
    request_id: makeRequestId(),
    coupon: code,
    merchant: merchants[number % merchants.length]!,
    store: `store ${number % 900}`,
    terminal: `till ${number % 7}`,
    order_amount: (2_000 + (number % 8_000)) / 100,
    order_id: String(100_000 + number),
  };
}

/** The call that the HTTP layer makes of such a body. */
export function tillCall({ credentialId, keys }: Environment, operation: string, { lookup, body }: Coupon): Call {
  const { request_id, ...args } = body;
  return {
    credential_id: credentialId,
    nonce: makeNonce(),
    operation,
    request_id,
    idempotency_key: null,
    body_hash: operation === "query" ? null : hashBody(keys, body),
    args: { ...args, coupon: lookup },
  };
}

/** The call that comes after this one, about the same coupon. */
export function nextCall(call: Call, operation: "confirm" | "reverse", redemption: string): Call {
  const { coupon, merchant } = call.args;
  return {
    ...call,
    nonce: makeNonce(),
    operation,
    request_id: makeRequestId(),
    args:
      operation === "confirm"
        ? { coupon, merchant, lock_request_id: call.request_id }
        : { redemption, reason: "returned" },
  };
}

const makeNonce = (): string => randomBytes(12).toString("base64url");
// As long as a UUID. No code has the letter u, so no request_id looks like one by chance.
const makeRequestId = (): string => randomUUID().replaceAll("-", "u");

// Released coupons in random order, each drawn once. A coupon's code is derived when the coupon is drawn. When a batch
// is used up, another is minted, outside the measured time.
import { randomInt } from "node:crypto";
import { batchKey, lookupHash, makeCode } from "../../src/crypto/coupon-code.ts";
import type { Database } from "../../src/database/types.ts";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import type { Coupon } from "./requests.ts";

export type CouponPool = {
  draw(count: number): Promise<Coupon[]>;
  // Takes back coupons that were drawn but not sent.
  giveBack(coupons: Coupon[]): void;
};
type Batch = { tenant_id: number; batch_id: number; salt: Uint8Array; key_version: string; total_count: number };
type Row = { number: number; code_attempt: number; lookup: string };
type BatchCoupons = { take(most: number): Promise<Coupon[]>; left(): number };

const pageSize = 5_000;

export async function createCouponPool(mintBatch: () => Promise<BatchCoupons>): Promise<CouponPool> {
  let batch = await mintBatch();
  const returned: Coupon[] = [];
  return {
    async draw(count) {
      const coupons = returned.splice(0, count);
      while (coupons.length < count) {
        if (batch.left() === 0) batch = await mintBatch();
        coupons.push(...(await batch.take(Math.min(pageSize, count - coupons.length))));
      }
      return coupons;
    },
    giveBack(coupons) {
      for (const coupon of coupons) returned.push(coupon);
    },
  };
}

type BatchOptions = { owner: Database; keys: MasterKeys; batch: string };

export async function openBatch({ owner, keys, batch }: BatchOptions): Promise<BatchCoupons> {
  const [found] = await owner.rows<Batch>(
    "select b.tenant_id, b.batch_id, b.salt, b.key_version, b.total_count from core.batch b where b.external_id = $1",
    [batch],
  );
  const { tenant_id, batch_id, salt, key_version, total_count } = found!;
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
    const rows = await owner.rows<Row>(
      `select c.number, c.code_attempt, c.lookup_hash::text as lookup
       from core.coupon c
       where c.tenant_id = $1 and c.batch_id = $2 and c.number = any ($3::int[]) and c.status = 'ISSUED'`,
      [tenant_id, batch_id, drawn],
    );
    const byNumber = new Map(rows.map((row) => [row.number, row]));
    return drawn.flatMap((number) => {
      const row = byNumber.get(number);
      if (row === undefined) return [];
      const code = makeCode(keys, key_version, key, number, row.code_attempt);
      if (lookupHash(keys, code) !== row.lookup) throw new Error("the derived code is not the coupon's code");
      return [{ number, code, lookup: row.lookup }];
    });
  }

  return { take, left: () => left };
}

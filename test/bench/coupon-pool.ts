// Released coupons in random order, each drawn once: its code is derived when it is drawn. Where a batch is used up
// another one is minted, outside of what is measured.
import { randomInt } from "node:crypto";
import { batchKey, lookupHash, makeCode } from "../../src/crypto/coupon-code.ts";
import type { Database } from "../../src/database/types.ts";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import type { Coupon } from "./requests.ts";

export type Deck = {
  // So many unused ones.
  draw(count: number): Promise<Coupon[]>;
  // Those that were not sent after all.
  giveBack(coupons: Coupon[]): void;
};
type Batch = { tenant_id: number; batch_id: number; salt: Uint8Array; key_version: string; total_count: number };
type Row = { number: number; code_attempt: number; lookup: string };

type Pile = { take(most: number): Promise<Coupon[]>; left(): number };

const pageSize = 5_000;

export async function createDeck(mintPile: () => Promise<Pile>): Promise<Deck> {
  let pile = await mintPile();
  const returned: Coupon[] = [];
  return {
    async draw(count) {
      const coupons = returned.splice(0, count);
      while (coupons.length < count) {
        if (pile.left() === 0) pile = await mintPile();
        coupons.push(...(await pile.take(Math.min(pageSize, count - coupons.length))));
      }
      return coupons;
    },
    giveBack(coupons) {
      for (const coupon of coupons) returned.push(coupon);
    },
  };
}

// Of one batch.
export async function createPile({
  owner,
  keys,
  batch,
}: {
  owner: Database;
  keys: MasterKeys;
  batch: string;
}): Promise<Pile> {
  const [found] = await owner.rows<Batch>(
    "select b.tenant_id, b.batch_id, b.salt, b.key_version, b.total_count from core.batch b where b.external_id = $1",
    [batch],
  );
  const { tenant_id, batch_id, salt, key_version, total_count } = found!;
  const key = batchKey(keys, key_version, salt);
  const numbers = Uint32Array.from({ length: total_count }, (_, index) => index + 1);
  let left = total_count;

  // Shuffles as it goes: of ten million few are drawn.
  function drawNumber(): number {
    const at = randomInt(left);
    const number = numbers[at]!;
    left -= 1;
    numbers[at] = numbers[left]!;
    return number;
  }

  // Fewer where some have been redeemed by others.
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
      if (lookupHash(keys, code) !== row.lookup) throw new Error("a code that is not its coupon's");
      return [{ number, code, lookup: row.lookup }];
    });
  }

  return { take, left: () => left };
}

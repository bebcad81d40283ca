// scale: redemptions in a second over HTTP with few coupons, and with many coupons and redemptions. The two have
// databases, services and workers of their own, and their rounds alternate. The worker mints the coupons; fill.ts
// writes a tenth of them as redeemed.
import { setTimeout as sleep } from "node:timers/promises";
import { openPool } from "./coupons.ts";
import { openEnvironment, settle, type Environment, type Run } from "./environment.ts";
import { fillRedemptions } from "./fill.ts";
import { openLoader } from "./load.ts";
import { median, type Row } from "./measure.ts";

const [largestBatch, fewCoupons] = [10_000_000, 100_000];

export async function benchScale({ open, server, size, rounds }: Run): Promise<Row[]> {
  const small = await open();
  const large = await openEnvironment(server);
  for (let left = size; left > largestBatch; left -= largestBatch) await large.release(largestBatch);
  const few = Math.min(fewCoupons, Math.ceil(size / 3));
  const sides = [
    { environment: small, pool: await openPool(small, few), rates: [] as number[] },
    { environment: large, pool: await openPool(large, Math.min(size, largestBatch)), rates: [] as number[] },
  ];
  const batches = await large.database.rows<{ id: string }>("select external_id as id from core.batch");
  const ids = batches.map(({ id }) => id);
  const filled = await fillRedemptions(large, ids, { every: 10 });
  await large.untilCaughtUp();

  const loader = openLoader();
  // For a warm-up round, the measured rounds, and a remainder.
  const perRound = Math.floor(few / (rounds + 2));
  let scansBefore = 0;
  for (let number = 0; number <= rounds; number += 1) {
    // After the warm-up round, because statistics of empty tables are misleading.
    if (number === 1) {
      for (const { environment } of sides) await settle(environment);
      // A vacuum updates the BRIN index of this table, which would count as a scan.
      await large.database.rows("alter table core.request set (autovacuum_enabled = off)");
      scansBefore = await readScans(large);
    }
    for (const { environment, pool, rates } of sides) {
      const start = await loader.prepare(environment, await pool.draw(perRound), { connections: 64 });
      const { seconds } = await start();
      if (number > 0) rates.push(perRound / seconds);
    }
  }
  const scans = (await readScans(large)) - scansBefore;
  await loader.end();
  await large.close();
  const [slow, fast] = [median(sides[1]!.rates), median(sides[0]!.rates)];
  return [
    { name: `${few} coupons`, "redemptions/s": fast },
    { name: `${size} coupons, ${filled} redeemed`, "redemptions/s": slow, "of the rate": slow / fast, scans },
  ];
}

/** Counts scans of the tables that grow. Sessions report their reads within a second of their last transaction. */
async function readScans({ database }: Environment): Promise<number> {
  await sleep(1_500);
  const [row] = await database.rows<{ scans: number }>(
    `select sum(seq_scan)::int as scans from pg_stat_user_tables
     where schemaname = 'core' and relname in ('coupon', 'redemption', 'ledger_entry', 'request')`,
  );
  return row!.scans;
}

// scale: redemptions per second over HTTP with few coupons, and with many coupons and redemptions. The two have
// separate databases, services and workers, and their rounds alternate. The worker mints the coupons; fill.ts writes
// the redemptions as rows.
import { setTimeout as sleep } from "node:timers/promises";
import { createHttp } from "./contenders.ts";
import type { CouponPool } from "./coupon-pool.ts";
import { median, type Report } from "./results.ts";
import { fillRedemptions } from "./fill.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openEnvironment, settle, untilCaughtUp, type Environment } from "./environment.ts";

const largestBatch = 10_000_000;
const noClock = { begin: async () => {}, end: async () => {} };

export async function benchScale(
  server: Server,
  { scaleSmall, scaleLarge, redemptionCount, seconds, rounds }: Settings,
): Promise<Report> {
  const [small, large] = [await openEnvironment(server), await openEnvironment(server)];
  const sides = [
    { count: scaleSmall, environment: small, pool: await small.makePool(scaleSmall), rates: [] as number[] },
    { count: scaleLarge, environment: large, pool: await makeMany(large, scaleLarge), rates: [] as number[] },
  ];
  const filled = await fillRedemptions(large, Math.max(1, Math.floor(scaleLarge / redemptionCount)));
  // For a warm-up round, the measured rounds, and a remainder.
  const most = Math.floor(scaleSmall / (rounds + 2));
  const workers = [await small.startWorker(), await large.startWorker()];
  await untilCaughtUp(large);
  const contenders = sides.map((side) => ({
    ...side,
    contender: createHttp(side.environment, side.pool, { most }),
  }));
  let before = 0;
  for (let number = 0; number <= rounds; number += 1) {
    // After the warm-up round, because statistics of empty tables are misleading.
    if (number === 1) {
      for (const { environment } of sides) await settle(environment);
      // A vacuum updates the BRIN index of this table, which would count as a scan.
      await large.owner.rows("alter table core.request set (autovacuum_enabled = off)");
      before = await readScans(large);
    }
    for (const { contender, rates } of contenders) {
      const go = await contender.prepare(seconds);
      const round = await go(noClock);
      if (number > 0) rates.push(round.count / round.seconds);
    }
  }
  const scans = (await readScans(large)) - before;
  for (const worker of workers) await worker.stop();
  for (const { contender, environment } of contenders) {
    contender.end();
    await environment.close();
  }
  const [few, many] = sides.map(({ rates }) => median(rates)) as [number, number];
  return {
    results: [
      { name: `http at ${scaleSmall} coupons`, value: few, unit: "/s" },
      { name: `http at ${scaleLarge} coupons, ${filled} redemptions`, value: many, unit: "/s" },
      { name: "many / few", value: many / few, unit: "", aim: { atLeast: 0.9 } },
      { name: `at ${scaleLarge} coupons: scans of whole tables`, value: scans, unit: "", aim: { atMost: 0 } },
    ],
    details: { few: sides[0]!.rates, many: sides[1]!.rates },
  };
}

// The pool is of the last batch; a batch has at most ten million coupons.
async function makeMany(environment: Environment, count: number): Promise<CouponPool> {
  for (; count > largestBatch; count -= largestBatch) await environment.makePool(largestBatch);
  return environment.makePool(count);
}

// Counts scans of the tables that grow. Sessions report their reads within a second of their last transaction.
async function readScans({ owner }: Environment): Promise<number> {
  await sleep(1_500);
  const [row] = await owner.rows<{ scans: number }>(
    `select sum(s.seq_scan)::int as scans
     from pg_stat_user_tables s
     where s.schemaname = 'core' and s.relname in ('coupon', 'redemption', 'ledger_entry', 'request')`,
  );
  return row!.scans;
}

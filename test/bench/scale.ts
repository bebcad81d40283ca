// scale: redemptions a second over HTTP at few coupons and at many that have seen many redemptions, each with a database and a
// service of its own, in turn. The coupons are minted by the worker, the redemptions are written as rows (see fill.ts).
import { setTimeout as sleep } from "node:timers/promises";
import { createHttp } from "./contenders.ts";
import { median, type Report } from "./figures.ts";
import { fillRedemptions } from "./fill.ts";
import { rateOf } from "./rates.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openStage, settle, type Stage } from "./environment.ts";

const noClock = { begin: async () => {}, end: async () => {} };

export async function benchScale(
  server: Server,
  { scaleSmall, scaleLarge, redemptionCount, seconds, rounds }: Settings,
): Promise<Report> {
  const [small, large] = [await openStage(server), await openStage(server)];
  const sides = [
    { count: scaleSmall, stage: small, deck: await small.makeDeck(scaleSmall), rates: [] as number[] },
    { count: scaleLarge, stage: large, deck: await large.makeDeck(scaleLarge), rates: [] as number[] },
  ];
  const filled = await fillRedemptions(large, Math.max(1, Math.floor(scaleLarge / redemptionCount)));
  // A warm round, the rounds, and something left in the end.
  const most = Math.floor(scaleSmall / (rounds + 2));
  const contenders = sides.map((side) => ({ ...side, contender: createHttp(side.stage, side.deck, "redeem", most) }));
  let before = 0;
  for (let number = 0; number <= rounds; number += 1) {
    // Behind the warm round: statistics of tables that are still empty would tell what is not so any more.
    if (number === 1) {
      for (const { stage } of sides) await settle(stage);
      // Its BRIN index is brought up to date by a vacuum, which counts as a scan.
      await large.owner.rows("alter table core.request set (autovacuum_enabled = off)");
      before = await readScans(large);
    }
    for (const { contender, rates } of contenders) {
      const go = await contender.prepare(seconds);
      const round = await go(noClock);
      if (number > 0) rates.push(rateOf(round));
    }
  }
  const scans = (await readScans(large)) - before;
  for (const { contender, stage } of contenders) {
    contender.end();
    await stage.close();
  }
  const [few, many] = sides.map(({ rates }) => median(rates)) as [number, number];
  return {
    figures: [
      { name: `http at ${scaleSmall} coupons`, value: few, unit: "/s" },
      { name: `http at ${scaleLarge} coupons, ${filled} redemptions`, value: many, unit: "/s" },
      { name: "many / few", value: many / few, unit: "", aim: { atLeast: 0.9 } },
      { name: `at ${scaleLarge} coupons: scans of whole tables`, value: scans, unit: "", aim: { atMost: 0 } },
    ],
    details: { few: sides[0]!.rates, many: sides[1]!.rates },
  };
}

// Of the tables that grow; what sessions have read is told within a second of their last transaction.
async function readScans({ owner }: Stage): Promise<number> {
  await sleep(1_500);
  const [row] = await owner.rows<{ scans: number }>(
    "select sum(s.seq_scan)::int as scans from pg_stat_user_tables s where s.schemaname = 'core' and s.relname in ('coupon', 'redemption', 'event', 'ledger_entry', 'request')",
  );
  return row!.scans;
}

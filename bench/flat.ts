// flat: redemptions a second over HTTP at few coupons and at many that have seen many redemptions, each with a database and a
// service of its own, in turn. The coupons are minted by the worker, the redemptions are written as rows (see fill.ts).
import { createHttp } from "./contenders.ts";
import { median, type Report } from "./figures.ts";
import { fillRedemptions } from "./fill.ts";
import { rateOf } from "./rates.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openStage } from "./stage.ts";

const noClock = { begin: async () => {}, end: async () => {} };

export async function benchFlat(server: Server, { flatSmall, flatLarge, redemptionCount, seconds, rounds }: Settings): Promise<Report> {
  const [small, large] = [await openStage(server), await openStage(server)];
  const sides = [
    { count: flatSmall, stage: small, deck: await small.makeDeck(flatSmall), rates: [] as number[] },
    { count: flatLarge, stage: large, deck: await large.makeDeck(flatLarge), rates: [] as number[] },
  ];
  const filled = await fillRedemptions(large, Math.max(1, Math.floor(flatLarge / redemptionCount)));
  // A warm round, the rounds, and something left in the end.
  const most = Math.floor(flatSmall / (rounds + 2));
  const contenders = sides.map((side) => ({ ...side, contender: createHttp(side.stage, side.deck, "redeem", most) }));
  for (let number = 0; number <= rounds; number += 1) {
    for (const { contender, rates } of contenders) {
      const go = await contender.prepare(seconds);
      const round = await go(noClock);
      if (number > 0) rates.push(rateOf(round));
    }
  }
  for (const { contender, stage } of contenders) {
    contender.end();
    await stage.close();
  }
  const [few, many] = sides.map(({ rates }) => median(rates)) as [number, number];
  return {
    figures: [
      { name: `http at ${flatSmall} coupons`, value: few, unit: "/s" },
      { name: `http at ${flatLarge} coupons, ${filled} redemptions`, value: many, unit: "/s" },
      { name: "many / few", value: many / few, unit: "", aim: { atLeast: 0.9 } },
    ],
    details: { few: sides[0]!.rates, many: sides[1]!.rates },
  };
}

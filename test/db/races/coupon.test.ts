// Concurrent calls for one coupon: exactly one wins, the others learn why not, and none gets a 5xx.
import t, { type Test } from "tap";
import { fits } from "../../support/fits.ts";
import { readCouponHistory } from "../../support/inspect.ts";
import { countOutcomes, sendInTurn, sendTogether } from "../../support/race.ts";
import { scenario } from "../../support/scenario.ts";
import { holdCoupon } from "../../support/sessions.ts";
import type { Coupon } from "../../support/caller.ts";

const world = await scenario(t);
const { till } = world.a;

type Outcome = { status: string; redemptions: string[]; amounts: number[]; events: string[] };
const redeemed: Outcome = {
  status: "REDEEMED",
  redemptions: ["REDEEMED"],
  amounts: [500],
  events: ["coupon.redeemed"],
};
const locked: Outcome = { status: "LOCKED", redemptions: ["LOCKED"], amounts: [], events: [] };
const relocked: Outcome = { ...locked, redemptions: ["LAPSED", "LOCKED"] };
const cancelled: Outcome = { status: "ISSUED", redemptions: ["CANCELLED"], amounts: [], events: [] };
const reversed: Outcome = {
  status: "REDEEMED",
  redemptions: ["REVERSED"],
  amounts: [500, -500],
  events: ["coupon.redeemed", "coupon.reversed"],
};
const voided: Outcome = { status: "VOIDED", redemptions: [], amounts: [], events: ["coupon.voided"] };

async function checkCoupon(t: Test, { id }: Coupon, outcome: Outcome): Promise<void> {
  const { events, ...rest } = await readCouponHistory(world.owner, id);
  t.strictSame({ ...rest, events: events.map(({ type }) => type) }, outcome);
}

// Each row: how many equal calls, the state of the coupon, the refusal of all but one, and the outcome.
const crowds = [
  [100, "redeem", "ISSUED", "COUPON_REDEEMED", redeemed],
  [100, "lock", "ISSUED", "COUPON_LOCKED", locked],
  [20, "lock", "ISSUED, its lock lapsed", "COUPON_LOCKED", relocked],
  [20, "reverse", "REDEEMED", "REDEMPTION_REVERSED", reversed],
] as const;
for (const [count, name, state, code, outcome] of crowds)
  t.test(`Of ${count} calls of ${name} on a coupon that is ${state} exactly one succeeds`, async (t) => {
    const [coupon] = (await world.a.makeCoupons(1, state)) as [Coupon];
    const calls = Array.from({ length: count }, () => () => till[name](coupon));
    const answers = await sendTogether(world, await holdCoupon(world, coupon.id), calls);
    t.strictSame(countOutcomes(answers), { 200: 1, [code]: count - 1 });
    await checkCoupon(t, coupon, outcome);
  });

// Each row: the state of the coupon, the two calls in their order, the refusal of the second, and the outcome.
const pairs = [
  ["LOCKED by this lock", "confirm", "cancel", "LOCK_CONFIRMED", redeemed],
  ["LOCKED by this lock", "cancel", "confirm", "LOCK_CANCELLED", cancelled],
  ["ISSUED", "void", "redeem", "COUPON_VOIDED", voided],
  ["ISSUED", "redeem", "void", "COUPON_NOT_VOIDABLE", redeemed],
] as const;
for (const [state, first, second, code, outcome] of pairs)
  t.test(`Of a ${first} and a ${second} of one coupon the first wins, and the second learns the outcome`, async (t) => {
    for (const coupon of await world.a.makeCoupons(3, state)) {
      const calls = [() => till[first](coupon), () => till[second](coupon)];
      const [winner, loser] = await sendInTurn(world, coupon.id, calls);
      t.equal(winner!.status, 200);
      fits(t, loser, { status: 409, json: { code } });
      await checkCoupon(t, coupon, outcome);
    }
  });

t.test("A reissued coupon is redeemed again only after its reversal", async (t) => {
  const [coupon] = (await world.a.makeCoupons(1, "REDEEMED, reissuable")) as [Coupon];
  const calls = [() => till.redeem(coupon), () => till.reverse(coupon), () => till.redeem(coupon)];
  const [early, reversed, late] = await sendInTurn(world, coupon.id, calls);
  fits(t, early, { status: 409, json: { code: "COUPON_REDEEMED" } });
  t.strictSame([reversed!.status, late!.status], [200, 200]);
  await checkCoupon(t, coupon, {
    status: "REDEEMED",
    redemptions: ["REVERSED", "REDEEMED"],
    amounts: [500, -500, 500],
    events: ["coupon.redeemed", "coupon.reversed", "coupon.redeemed"],
  });
});

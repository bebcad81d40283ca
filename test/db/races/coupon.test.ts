// Concurrent calls for one coupon: exactly one wins, the others learn why not, and none gets a 5xx.
import t, { type Test } from "tap";
import { fits } from "../../support/fits.ts";
import { readCouponHistory } from "../../support/inspect.ts";
import { countOutcomes, sendInTurn, sendTogether, type Call } from "../../support/race.ts";
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
const cancelled: Outcome = { status: "ISSUED", redemptions: ["CANCELLED"], amounts: [], events: [] };
const voided: Outcome = { status: "VOIDED", redemptions: [], amounts: [], events: ["coupon.voided"] };

async function checkCoupon(t: Test, { id }: Coupon, outcome: Outcome): Promise<void> {
  const { events, ...rest } = await readCouponHistory(world.owner, id);
  t.strictSame({ ...rest, events: events.map(({ type }) => type) }, outcome);
}

const makeCoupon = async () => (await world.a.makeCoupons(1))[0]!;

/** Sends the call `count` times at once, while another session holds the coupon. Answers: the outcomes by count. */
async function crowd({ id }: Coupon, count: number, call: Call): Promise<Record<string, number>> {
  const calls = Array.from({ length: count }, () => call);
  return countOutcomes(await sendTogether(world, await holdCoupon(world, id), calls));
}

t.test("Of 100 redeems of one coupon exactly one succeeds", async (t) => {
  const coupon = await makeCoupon();
  t.strictSame(await crowd(coupon, 100, () => till.redeem(coupon)), { 200: 1, COUPON_REDEEMED: 99 });
  await checkCoupon(t, coupon, redeemed);
});

t.test("Of 100 locks of one coupon exactly one succeeds", async (t) => {
  const coupon = await makeCoupon();
  t.strictSame(await crowd(coupon, 100, () => till.lock(coupon)), { 200: 1, COUPON_LOCKED: 99 });
  await checkCoupon(t, coupon, locked);
});

t.test("Of 20 locks of a coupon with an expired lock exactly one succeeds", async (t) => {
  const [coupon] = (await world.a.makeCoupons(1, "ISSUED, its lock lapsed")) as [Coupon];
  t.strictSame(await crowd(coupon, 20, () => till.lock(coupon)), { 200: 1, COUPON_LOCKED: 19 });
  await checkCoupon(t, coupon, { ...locked, redemptions: ["LAPSED", "LOCKED"] });
});

t.test("Of 20 reverses of one redemption exactly one succeeds", async (t) => {
  const [coupon] = (await world.a.makeCoupons(1, "REDEEMED")) as [Coupon];
  t.strictSame(await crowd(coupon, 20, () => till.reverse(coupon)), { 200: 1, REDEMPTION_REVERSED: 19 });
  const events = ["coupon.redeemed", "coupon.reversed"];
  await checkCoupon(t, coupon, { status: "REDEEMED", redemptions: ["REVERSED"], amounts: [500, -500], events });
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

t.test("Of confirms and cancels of 30 locks, all at once, exactly one per lock wins", async (t) => {
  const coupons = await world.a.makeCoupons(30, "LOCKED by this lock");
  const answers = await Promise.all(coupons.map((coupon) => Promise.all([till.confirm(coupon), till.cancel(coupon)])));
  for (const [index, replies] of answers.entries()) {
    const isConfirmed = replies[0].status === 200;
    const refusal = isConfirmed ? "LOCK_CONFIRMED" : "LOCK_CANCELLED";
    t.strictSame(countOutcomes(replies), { 200: 1, [refusal]: 1 });
    await checkCoupon(t, coupons[index]!, isConfirmed ? redeemed : cancelled);
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

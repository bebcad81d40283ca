// Concurrent calls for one coupon: exactly one wins, the others learn why not, and none gets a 5xx.
import t, { type Test } from "tap";
import { fits } from "../../support/fits.ts";
import { readCouponHistory } from "../../support/inspect.ts";
import { countOutcomes, sendInTurn, sendTogether } from "../../support/race.ts";
import { allAgree, startRaceFixture, type RaceFixture } from "../../support/race-fixture.ts";
import { newRequestId } from "../../support/service.ts";
import { holdCoupon } from "../../support/sessions.ts";

let fixture: RaceFixture;
t.before(async () => {
  fixture = await startRaceFixture(t);
});

function race(name: string, run: (t: Test) => Promise<void>): void {
  t.test(name, async (t) => {
    await run(t);
    await allAgree(t, fixture);
  });
}

const times = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);

race("Of 100 redeems of one coupon exactly one succeeds", async (t) => {
  const { code, id } = await fixture.makeCoupon();
  const answers = await sendTogether(
    fixture.service,
    await holdCoupon(fixture.service, id),
    times(100, () => fixture.redeem(code)),
  );
  t.strictSame(countOutcomes(answers), { 200: 1, COUPON_REDEEMED: 99 });
  fits(t, await readCouponHistory(fixture.service.owner, id), {
    status: "REDEEMED",
    redemptions: ["REDEEMED"],
    amounts: [500],
    events: [{ type: "coupon.redeemed" }],
  });
});

race("Of 100 locks of one coupon exactly one succeeds", async (t) => {
  const { code, id } = await fixture.makeCoupon();
  const answers = await sendTogether(
    fixture.service,
    await holdCoupon(fixture.service, id),
    times(100, () => fixture.lock(code)),
  );
  t.strictSame(countOutcomes(answers), { 200: 1, COUPON_LOCKED: 99 });
  fits(t, await readCouponHistory(fixture.service.owner, id), {
    status: "LOCKED",
    redemptions: ["LOCKED"],
    amounts: [],
    events: [],
  });
});

race("Of 20 reverses of one redemption exactly one succeeds", async (t) => {
  const { code, id } = await fixture.makeCoupon();
  const { redemption } = (await fixture.redeem(code)).json;
  const answers = await sendTogether(
    fixture.service,
    await holdCoupon(fixture.service, id),
    times(20, () => fixture.reverse(redemption)),
  );
  t.strictSame(countOutcomes(answers), { 200: 1, REDEMPTION_REVERSED: 19 });
  fits(t, await readCouponHistory(fixture.service.owner, id), {
    status: "REDEEMED",
    redemptions: ["REVERSED"],
    amounts: [500, -500],
  });
  t.strictSame(await fixture.readEventTypes(id), ["coupon.redeemed", "coupon.reversed"]);
});

race("Of a confirm and a cancel of one lock the first wins, and the second learns the outcome", async (t) => {
  for (const { code, id } of await fixture.makeCoupons(3)) {
    const lockId = newRequestId();
    await fixture.lock(code, lockId);
    const [confirmed, cancelled] = await sendInTurn(fixture.service, id, [
      () => fixture.confirm(code, lockId),
      () => fixture.cancel(code, lockId),
    ]);
    t.equal(confirmed!.status, 200);
    fits(t, cancelled, { status: 409, json: { code: "LOCK_CONFIRMED" } });
    fits(t, await readCouponHistory(fixture.service.owner, id), {
      status: "REDEEMED",
      redemptions: ["REDEEMED"],
      amounts: [500],
      events: [{ type: "coupon.redeemed" }],
    });
  }
  for (const { code, id } of await fixture.makeCoupons(3)) {
    const lockId = newRequestId();
    await fixture.lock(code, lockId);
    const [cancelled, confirmed] = await sendInTurn(fixture.service, id, [
      () => fixture.cancel(code, lockId),
      () => fixture.confirm(code, lockId),
    ]);
    t.equal(cancelled!.status, 200);
    fits(t, confirmed, { status: 409, json: { code: "LOCK_CANCELLED" } });
    t.strictSame(await readCouponHistory(fixture.service.owner, id), {
      status: "ISSUED",
      redemptions: ["CANCELLED"],
      amounts: [],
      events: [],
    });
  }
});

race("Of confirms and cancels of 30 locks, all at once, exactly one per lock wins", async (t) => {
  const coupons = await fixture.makeCoupons(30);
  const locks = await Promise.all(
    coupons.map(async ({ code }) => {
      const lockId = newRequestId();
      await fixture.lock(code, lockId);
      return lockId;
    }),
  );
  const pairs = await Promise.all(
    coupons.map(({ code }, index) =>
      Promise.all([fixture.confirm(code, locks[index]!), fixture.cancel(code, locks[index]!)]),
    ),
  );
  for (const [index, [confirmed, cancelled]] of pairs.entries()) {
    const isConfirmed = confirmed.status === 200;
    fits(t, isConfirmed ? cancelled.json : confirmed.json, { code: isConfirmed ? "LOCK_CONFIRMED" : "LOCK_CANCELLED" });
    t.equal(isConfirmed ? confirmed.status : cancelled.status, 200);
    fits(
      t,
      await readCouponHistory(fixture.service.owner, coupons[index]!.id),
      isConfirmed
        ? { status: "REDEEMED", redemptions: ["REDEEMED"] }
        : { status: "ISSUED", redemptions: ["CANCELLED"] },
    );
  }
});

race("Of a void and a redeem of one coupon the first wins, and the second learns the outcome", async (t) => {
  for (const { code, id } of await fixture.makeCoupons(3)) {
    const [voided, redeemed] = await sendInTurn(fixture.service, id, [
      () => fixture.voidCoupon(code),
      () => fixture.redeem(code),
    ]);
    t.equal(voided!.status, 200);
    fits(t, redeemed, { status: 409, json: { code: "COUPON_VOIDED" } });
    fits(t, await readCouponHistory(fixture.service.owner, id), {
      status: "VOIDED",
      redemptions: [],
      amounts: [],
      events: [{ type: "coupon.voided" }],
    });
  }
  for (const { code, id } of await fixture.makeCoupons(3)) {
    const [redeemed, voided] = await sendInTurn(fixture.service, id, [
      () => fixture.redeem(code),
      () => fixture.voidCoupon(code),
    ]);
    t.equal(redeemed!.status, 200);
    fits(t, voided, { status: 409, json: { code: "COUPON_NOT_VOIDABLE" } });
    fits(t, await readCouponHistory(fixture.service.owner, id), {
      status: "REDEEMED",
      redemptions: ["REDEEMED"],
      amounts: [500],
      events: [{ type: "coupon.redeemed" }],
    });
  }
});

race("A reissued coupon is redeemed again only after its reversal", async (t) => {
  await fixture.provision("tpl_again", { after_reversal: "reissued" });
  const { code, id } = await fixture.makeCoupon("tpl_again");
  const { redemption } = (await fixture.redeem(code)).json;
  const [early, reversed, late] = await sendInTurn(fixture.service, id, [
    () => fixture.redeem(code),
    () => fixture.reverse(redemption),
    () => fixture.redeem(code),
  ]);
  fits(t, early, { status: 409, json: { code: "COUPON_REDEEMED" } });
  t.equal(reversed!.status, 200);
  t.equal(late!.status, 200);
  fits(t, await readCouponHistory(fixture.service.owner, id), {
    status: "REDEEMED",
    redemptions: ["REVERSED", "REDEEMED"],
    amounts: [500, -500, 500],
  });
  t.strictSame(await fixture.readEventTypes(id), ["coupon.redeemed", "coupon.reversed", "coupon.redeemed"]);
});

race("Of 20 locks of a coupon with an expired lock exactly one succeeds", async (t) => {
  const { code, id } = await fixture.makeCoupon();
  const { redemption } = (await fixture.lock(code)).json;
  await fixture.service.owner.rows(
    "update core.redemption set lock_expires_at = clock_timestamp() where redemption_id = rules.parse_id('red', $1)",
    [redemption],
  );
  const answers = await sendTogether(
    fixture.service,
    await holdCoupon(fixture.service, id),
    times(20, () => fixture.lock(code)),
  );
  t.strictSame(countOutcomes(answers), { 200: 1, COUPON_LOCKED: 19 });
  fits(t, await readCouponHistory(fixture.service.owner, id), { status: "LOCKED", redemptions: ["LAPSED", "LOCKED"] });
});

// Many who want one coupon: exactly one gets it, the others are told why not, and nobody sees a 5xx.
import t, { type Test } from "tap";
import type { Client } from "../../support/client.ts";
import { findBrokenInvariants, readCouponHistory } from "../../support/inspect.ts";
import { countOutcomes, sendTogether, sendInTurn, untilPast, untilBlocked } from "../../support/race.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { holdCoupon } from "../../support/sessions.ts";

const merchant = "mch_a";
let service: Running;
let a: Client;
t.before(async () => {
  service = await startService(t);
  a = service.as("ak_a");
  const valid = { valid_from: "2020-01-01T00:00:00Z", valid_to: "2099-01-01T00:00:00Z" };
  const short = {
    id: "tpl_short",
    name: "short locks",
    maker: "pty_a",
    currency: "EUR",
    discount: { type: "fixed", amount: 5 },
    lock_ttl_seconds: 1,
    ...valid,
  };
  await service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", templates: [short] }] });
});

// A test that ends with a look at everything: whoever won, coupons, redemptions, ledger and events agree.
function race(name: string, run: (t: Test) => Promise<void>): void {
  t.test(name, async (t) => {
    await run(t);
    t.strictSame(await findBrokenInvariants(service.owner), []);
  });
}

async function makeCoupons(count: number, template = "tpl_fixed"): Promise<{ code: string; id: string }[]> {
  const { codes, couponIds } = await service.makeBatch(a, template, count);
  return codes.map((code, index) => ({ code, id: couponIds[index]! }));
}
const makeCoupon = async (template?: string) => (await makeCoupons(1, template))[0]!;

const post = (path: string, body: object) => a.post(path, { request_id: newRequestId(), ...body });
const lock = (coupon: string, request_id = newRequestId()) =>
  post("/v1/coupons/lock", { request_id, coupon, merchant });
const redeem = (coupon: string) => post("/v1/coupons/redeem", { coupon, merchant });
const confirm = (coupon: string, lock_request_id: string) =>
  post("/v1/coupons/confirm", { coupon, merchant, lock_request_id });
const cancel = (coupon: string, lock_request_id: string) => post("/v1/coupons/cancel", { coupon, lock_request_id });
const voidIt = (coupon: string) => post("/v1/coupons/void", { coupon, merchant });
const reverse = (redemption: string) => post("/v1/redemptions/reverse", { redemption });
const times = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);
const typesOf = async (couponId: string) =>
  (await readCouponHistory(service.owner, couponId)).events.map(({ type }) => type);

race("of 100 redeems of one coupon exactly one succeeds", async (t) => {
  const { code, id } = await makeCoupon();
  const answers = await sendTogether(
    service,
    await holdCoupon(service, id),
    times(100, () => redeem(code)),
  );
  t.strictSame(countOutcomes(answers), { 200: 1, COUPON_REDEEMED: 99 });
  t.match(await readCouponHistory(service.owner, id), {
    status: "REDEEMED",
    redemptions: ["REDEEMED"],
    amounts: [500],
    events: [{ type: "coupon.redeemed" }],
  });
});

race("of 100 locks of one coupon exactly one succeeds", async (t) => {
  const { code, id } = await makeCoupon();
  const answers = await sendTogether(
    service,
    await holdCoupon(service, id),
    times(100, () => lock(code)),
  );
  t.strictSame(countOutcomes(answers), { 200: 1, COUPON_LOCKED: 99 });
  t.match(await readCouponHistory(service.owner, id), {
    status: "LOCKED",
    redemptions: ["LOCKED"],
    amounts: [],
    events: [],
  });
});

race("of 20 reverses of one redemption exactly one succeeds", async (t) => {
  const { code, id } = await makeCoupon();
  const { redemption } = (await redeem(code)).json;
  const answers = await sendTogether(
    service,
    await holdCoupon(service, id),
    times(20, () => reverse(redemption)),
  );
  t.strictSame(countOutcomes(answers), { 200: 1, REDEMPTION_REVERSED: 19 });
  t.match(await readCouponHistory(service.owner, id), {
    status: "REDEEMED",
    redemptions: ["REVERSED"],
    amounts: [500, -500],
  });
  t.strictSame(await typesOf(id), ["coupon.redeemed", "coupon.reversed"]);
});

race("confirm and cancel of one lock: who comes first wins, the other is told", async (t) => {
  for (const { code, id } of await makeCoupons(3)) {
    const lockId = newRequestId();
    await lock(code, lockId);
    const [confirmed, cancelled] = await sendInTurn(service, id, [
      () => confirm(code, lockId),
      () => cancel(code, lockId),
    ]);
    t.equal(confirmed!.status, 200);
    t.match(cancelled, { status: 409, json: { code: "LOCK_CONFIRMED" } });
    t.match(await readCouponHistory(service.owner, id), {
      status: "REDEEMED",
      redemptions: ["REDEEMED"],
      amounts: [500],
      events: [{ type: "coupon.redeemed" }],
    });
  }
  for (const { code, id } of await makeCoupons(3)) {
    const lockId = newRequestId();
    await lock(code, lockId);
    const [cancelled, confirmed] = await sendInTurn(service, id, [
      () => cancel(code, lockId),
      () => confirm(code, lockId),
    ]);
    t.equal(cancelled!.status, 200);
    t.match(confirmed, { status: 409, json: { code: "LOCK_CANCELLED" } });
    t.strictSame(await readCouponHistory(service.owner, id), {
      status: "ISSUED",
      redemptions: ["CANCELLED"],
      amounts: [],
      events: [],
    });
  }
});

race("confirm and cancel of 30 locks, all at once: of each lock exactly one wins", async (t) => {
  const coupons = await makeCoupons(30);
  const locks = await Promise.all(
    coupons.map(async ({ code }) => {
      const lockId = newRequestId();
      await lock(code, lockId);
      return lockId;
    }),
  );
  const pairs = await Promise.all(
    coupons.map(({ code }, index) => Promise.all([confirm(code, locks[index]!), cancel(code, locks[index]!)])),
  );
  for (const [index, [confirmed, cancelled]] of pairs.entries()) {
    const isConfirmed = confirmed.status === 200;
    t.match(isConfirmed ? cancelled.json : confirmed.json, { code: isConfirmed ? "LOCK_CONFIRMED" : "LOCK_CANCELLED" });
    t.equal(isConfirmed ? confirmed.status : cancelled.status, 200);
    t.match(
      await readCouponHistory(service.owner, coupons[index]!.id),
      isConfirmed
        ? { status: "REDEEMED", redemptions: ["REDEEMED"] }
        : { status: "ISSUED", redemptions: ["CANCELLED"] },
    );
  }
});

race("void and redeem of one coupon: who comes first wins, the other is told", async (t) => {
  for (const { code, id } of await makeCoupons(3)) {
    const [voided, redeemed] = await sendInTurn(service, id, [() => voidIt(code), () => redeem(code)]);
    t.equal(voided!.status, 200);
    t.match(redeemed, { status: 409, json: { code: "COUPON_VOIDED" } });
    t.match(await readCouponHistory(service.owner, id), {
      status: "VOIDED",
      redemptions: [],
      amounts: [],
      events: [{ type: "coupon.voided" }],
    });
  }
  for (const { code, id } of await makeCoupons(3)) {
    const [redeemed, voided] = await sendInTurn(service, id, [() => redeem(code), () => voidIt(code)]);
    t.equal(redeemed!.status, 200);
    t.match(voided, { status: 409, json: { code: "COUPON_NOT_VOIDABLE" } });
    t.match(await readCouponHistory(service.owner, id), {
      status: "REDEEMED",
      redemptions: ["REDEEMED"],
      amounts: [500],
      events: [{ type: "coupon.redeemed" }],
    });
  }
});

race(
  "reverse and redeem of a coupon that is reissued: the second redemption comes after the reversal or not at all",
  async (t) => {
    await service.apply({
      tenants: [
        {
          id: "ten_a",
          name: "A",
          variant: "A",
          templates: [
            {
              id: "tpl_again",
              name: "reissued",
              maker: "pty_a",
              currency: "EUR",
              discount: { type: "fixed", amount: 5 },
              after_reversal: "reissued",
              valid_from: "2020-01-01T00:00:00Z",
              valid_to: "2099-01-01T00:00:00Z",
            },
          ],
        },
      ],
    });
    const { code, id } = await makeCoupon("tpl_again");
    const { redemption } = (await redeem(code)).json;
    const [early, reversed, late] = await sendInTurn(service, id, [
      () => redeem(code),
      () => reverse(redemption),
      () => redeem(code),
    ]);
    t.match(early, { status: 409, json: { code: "COUPON_REDEEMED" } });
    t.equal(reversed!.status, 200);
    t.equal(late!.status, 200);
    t.match(await readCouponHistory(service.owner, id), {
      status: "REDEEMED",
      redemptions: ["REVERSED", "REDEEMED"],
      amounts: [500, -500, 500],
    });
    t.strictSame(await typesOf(id), ["coupon.redeemed", "coupon.reversed", "coupon.redeemed"]);
  },
);

race("a redeem that waits while valid_to passes is refused: the clock is read when the coupon is held", async (t) => {
  const { code, id } = await makeCoupon();
  const [row] = await service.admin.rows<{ valid_to: string }>(
    "select v::text as valid_to, admin.extend_coupon('ten_a', $1, v, 'to arrange a test') from (select clock_timestamp() + interval '700 ms' as v) x",
    [id],
  );
  const release = await holdCoupon(service, id);
  const answer = redeem(code);
  await untilBlocked(service, 1)
    .then(() => untilPast(service, row!.valid_to))
    .finally(release);
  t.match(await answer, { status: 409, json: { code: "COUPON_EXPIRED" } });
  t.strictSame(await readCouponHistory(service.owner, id), {
    status: "ISSUED",
    redemptions: [],
    amounts: [],
    events: [],
  });
});

race("a confirm that waits while its lock ends is refused", async (t) => {
  const { code, id } = await makeCoupon("tpl_short");
  const lockId = newRequestId();
  const { lock_expires_at } = (await lock(code, lockId)).json;
  const release = await holdCoupon(service, id);
  const answer = confirm(code, lockId);
  // The answer shows milliseconds, the row has more.
  await untilBlocked(service, 1)
    .then(() => untilPast(service, new Date(Date.parse(lock_expires_at) + 1).toISOString()))
    .finally(release);
  t.match(await answer, { status: 409, json: { code: "LOCK_EXPIRED" } });
  t.match(await readCouponHistory(service.owner, id), {
    status: "LOCKED",
    redemptions: ["LOCKED"],
    amounts: [],
    events: [],
  });
});

race("many locks of a coupon whose lock has lapsed: exactly one gets it", async (t) => {
  const { code, id } = await makeCoupon("tpl_short");
  const { lock_expires_at } = (await lock(code)).json;
  await untilPast(service, new Date(Date.parse(lock_expires_at) + 1).toISOString());
  const answers = await sendTogether(
    service,
    await holdCoupon(service, id),
    times(20, () => lock(code)),
  );
  t.strictSame(countOutcomes(answers), { 200: 1, COUPON_LOCKED: 19 });
  t.match(await readCouponHistory(service.owner, id), { status: "LOCKED", redemptions: ["LAPSED", "LOCKED"] });
});

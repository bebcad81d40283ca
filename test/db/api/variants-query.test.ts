// Where the two variants differ in what a query shows.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import { fits } from "../../support/fits.ts";
import { tenants, template } from "../../support/tenants.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { readState } from "../../support/state.ts";
import { variants } from "./variant-callers.ts";

const [tenantA, , tenantB] = structuredClone(tenants) as [any, any, any];

let service: Running;
t.before(async () => {
  service = await startService(t, { tenants: [tenantA, tenantB] });
});

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

t.test(
  "An unreleased coupon shows as ISSUED in A and CREATED in B, cannot be redeemed and can be voided",
  async (t) => {
    for (const { variant, makerKey, shopKey, template, merchant } of variants) {
      const { codes } = await service.makeBatch(service.as(makerKey), template, 1, { isReleased: false });
      const shop = service.as(shopKey);
      const status = async () =>
        (await shop.post("/v1/coupons/query", { coupon: codes[0], merchant })).json.coupon.status;
      t.equal(await status(), variant === "A" ? "ISSUED" : "CREATED");
      const before = await readState(service.owner);
      for (const operation of ["lock", "redeem"]) {
        const reply = await shop.post(`/v1/coupons/${operation}`, {
          request_id: newRequestId(),
          coupon: codes[0],
          merchant,
        });
        fits(t, reply, { status: 409, json: { code: "COUPON_NOT_RELEASED" } });
      }
      t.strictSame(await readState(service.owner), before, "refusals change nothing");
      fits(t, await shop.post("/v1/coupons/void", { request_id: newRequestId(), coupon: codes[0], merchant }), {
        status: 200,
        json: { status: "VOIDED" },
      });
      t.equal(await status(), "VOIDED");
    }
  },
);

t.test("A query returns the fields of its variant, and in A also the live or last redemption", async (t) => {
  for (const { variant, makerKey, shopKey, template, merchant } of variants) {
    const { id, codes, couponIds } = await service.makeBatch(service.as(makerKey), template, 1);
    const shop = service.as(shopKey);
    const query = async () => {
      const { status, json } = await shop.post("/v1/coupons/query", { coupon: codes[0], merchant });
      t.equal(status, 200);
      t.strictSame(Object.keys(json), ["ok", "coupon"]);
      return json.coupon;
    };
    const fields =
      variant === "A"
        ? ["coupon_id", "status", "batch_id", "created_at", "valid_from", "valid_to"]
        : ["coupon_id", "status", "template_id", "batch_id", "created_at"];
    const fresh = await query();
    t.strictSame(Object.keys(fresh), fields);
    fits(t, fresh, {
      coupon_id: couponIds[0],
      status: "ISSUED",
      batch_id: id,
      created_at: iso,
      ...(variant === "A"
        ? { valid_from: "2020-01-01T00:00:00.000Z", valid_to: "2099-01-01T00:00:00.000Z" }
        : { template_id: template }),
    });

    const lock = { request_id: newRequestId(), coupon: codes[0], merchant, order_amount: 3.2 };
    await shop.post("/v1/coupons/lock", lock);
    const shown = async (status: string, redemption: string | null) => {
      const coupon = await query();
      t.strictSame(Object.keys(coupon), variant === "A" && redemption !== null ? [...fields, "redemption"] : fields);
      t.equal(coupon.status, status);
      if (variant === "A" && redemption !== null) {
        fits(t, coupon.redemption, {
          merchant_id: merchant,
          status: redemption,
          started_at: iso,
          discount_amount: 3.2,
          currency: "EUR",
        });
        t.equal(Object.keys(coupon.redemption).length, 5);
      }
    };
    await shown("LOCKED", "LOCKED");
    await shop.post("/v1/coupons/cancel", {
      request_id: newRequestId(),
      coupon: codes[0],
      lock_request_id: lock.request_id,
    });
    await shown("ISSUED", null);
    const { json } = await shop.post("/v1/coupons/redeem", { ...lock, request_id: newRequestId() });
    await shown("REDEEMED", "REDEEMED");
    await shop.post("/v1/redemptions/reverse", { request_id: newRequestId(), redemption: json.redemption });
    await shown("REDEEMED", "REVERSED");
  }
});

t.test("A query in Variant A shows the newest of several redemptions", async (t) => {
  const again = template("tpl_again", "pty_a", { after_reversal: "reissued" });
  await service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", templates: [again] }] });
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_again", 1);
  const place = { coupon: codes[0], merchant: "mch_a" };
  for (const amount of [3, 1, 2]) {
    const body = { request_id: newRequestId(), ...place, order_amount: amount };
    const { json } = await a.post("/v1/coupons/redeem", body);
    await a.post("/v1/redemptions/reverse", { request_id: newRequestId(), redemption: json.redemption });
    const shown = await a.post("/v1/coupons/query", place);
    fits(t, shown.json.coupon, { status: "ISSUED", redemption: { status: "REVERSED", discount_amount: amount } });
  }
});

t.test("A query shows the live redemption, also after the clock was set back", async (t) => {
  const psql = openSession(service.address, { name: "psql" });
  t.teardown(() => psql.end());
  await psql.run("set session_replication_role = replica");
  const again = template("tpl_late", "pty_a", { after_reversal: "reissued" });
  await service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", templates: [again] }] });
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_late", 1);
  const place = { coupon: codes[0], merchant: "mch_a" };
  const body = (amount: number) => ({ request_id: newRequestId(), ...place, order_amount: amount });
  const { json: first } = await a.post("/v1/coupons/redeem", body(1));
  await a.post("/v1/redemptions/reverse", { request_id: newRequestId(), redemption: first.redemption });
  // As if the first redemption had been made while the clock was an hour ahead.
  const move = (by: string) =>
    psql.run(
      `update core.redemption set started_at = started_at + '${by}', redeemed_at = redeemed_at + '${by}',
         ended_at = ended_at + '${by}'
       where rules.format_id('red', redemption_id) = '${first.redemption}'`,
    );
  await move("1 hour");
  const shown = async () => (await a.post("/v1/coupons/query", place)).json.coupon;
  fits(t, await shown(), { status: "ISSUED", redemption: { status: "REVERSED", discount_amount: 1 } });
  const lock = body(2);
  await a.post("/v1/coupons/lock", lock);
  fits(t, await shown(), { status: "LOCKED", redemption: { status: "LOCKED", discount_amount: 2 } });
  await a.post("/v1/coupons/confirm", { request_id: newRequestId(), ...place, lock_request_id: lock.request_id });
  fits(t, await shown(), { status: "REDEEMED", redemption: { status: "REDEEMED", discount_amount: 2 } });
  await move("-1 hour");
});

t.test("Past valid_to a coupon shows as EXPIRED in both variants, released or not", async (t) => {
  for (const { makerKey, shopKey, template, merchant } of variants) {
    for (const isReleased of [true, false]) {
      const { codes } = await service.makeBatch(service.as(makerKey), template, 1, { isReleased, isOver: true });
      const shop = service.as(shopKey);
      t.equal((await shop.post("/v1/coupons/query", { coupon: codes[0], merchant })).json.coupon.status, "EXPIRED");
      fits(t, await shop.post("/v1/coupons/redeem", { request_id: newRequestId(), coupon: codes[0], merchant }), {
        status: 409,
        json: { code: "COUPON_EXPIRED" },
      });
      fits(t, await shop.post("/v1/coupons/void", { request_id: newRequestId(), coupon: codes[0], merchant }), {
        status: 409,
        json: { code: "COUPON_NOT_VOIDABLE" },
      });
    }
  }
});

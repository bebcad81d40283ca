// What the race tests start with: one tenant, its calls at one merchant, and coupons to race for.
import type { Test } from "tap";
import type { Client, Reply } from "./client.ts";
import { findBrokenInvariants, readCouponHistory } from "./inspect.ts";
import { newRequestId, startService, type Running } from "./service.ts";
import { template } from "./tenants.ts";

export type Coupon = { code: string; id: string };
export type RaceFixture = {
  service: Running;
  a: Client;
  makeCoupons(count: number, template?: string): Promise<Coupon[]>;
  makeCoupon(template?: string): Promise<Coupon>;
  lock(coupon: string, requestId?: string): Promise<Reply>;
  redeem(coupon: string): Promise<Reply>;
  confirm(coupon: string, lockRequestId: string): Promise<Reply>;
  cancel(coupon: string, lockRequestId: string): Promise<Reply>;
  voidCoupon(coupon: string): Promise<Reply>;
  reverse(redemption: string): Promise<Reply>;
  /** Adds a template of ten_a, or changes it. */
  provision(id: string, more: object): Promise<unknown>;
  readEventTypes(couponId: string): Promise<string[]>;
};

export const merchant = "mch_a";

export async function startRaceFixture(t: Test): Promise<RaceFixture> {
  const service = await startService(t);
  const a = service.as("ak_a");
  const post = (path: string, body: object) => a.post(path, { request_id: newRequestId(), ...body });
  const makeCoupons: RaceFixture["makeCoupons"] = async (count, name = "tpl_fixed") => {
    const { codes, couponIds } = await service.makeBatch(a, name, count);
    return codes.map((code, index) => ({ code, id: couponIds[index]! }));
  };
  return {
    service,
    a,
    makeCoupons,
    makeCoupon: async (name) => (await makeCoupons(1, name))[0]!,
    lock: (coupon, request_id = newRequestId()) => post("/v1/coupons/lock", { request_id, coupon, merchant }),
    redeem: (coupon) => post("/v1/coupons/redeem", { coupon, merchant }),
    confirm: (coupon, lock_request_id) => post("/v1/coupons/confirm", { coupon, merchant, lock_request_id }),
    cancel: (coupon, lock_request_id) => post("/v1/coupons/cancel", { coupon, lock_request_id }),
    voidCoupon: (coupon) => post("/v1/coupons/void", { coupon, merchant }),
    reverse: (redemption) => post("/v1/redemptions/reverse", { redemption }),
    provision: (id, more) =>
      service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", templates: [template(id, "pty_a", more)] }] }),
    readEventTypes: async (couponId) =>
      (await readCouponHistory(service.owner, couponId)).events.map(({ type }) => type),
  };
}

/** Fails the test unless coupons, redemptions, ledger and events agree, whichever call won. */
export async function allAgree(t: Test, { service }: RaceFixture): Promise<void> {
  t.strictSame(await findBrokenInvariants(service.owner), [], "all invariants hold");
}

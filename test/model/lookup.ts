// What a call refers to, and whether its caller may use it.
import { notFound, refuse, type Call, type Expected } from "./call.ts";
import type { Coupon, Redemption } from "./coupon.ts";
import { kindOf, type Caller } from "./kinds.ts";
import type { Model } from "./knowledge.ts";

export function findCoupon({ setup, coupons }: Model, { by, values }: Call): Coupon | undefined {
  return by.tenant === setup.tenant ? coupons.find(({ code }) => code === values["coupon"]) : undefined;
}

export function isInScope({ kind }: Coupon, merchant: unknown): boolean {
  return kindOf(kind).merchants?.includes(merchant as string) ?? true;
}

export function mayActFor({ merchants }: Caller, merchant: unknown): boolean {
  return merchants.includes(merchant as string);
}

// Names a lock that was cancelled before it came.
export const lockMark = (scope: string, lockId: unknown): string => JSON.stringify([scope, lockId]);

// The lock or redeem that a request_id names: that of the first call, or of a retry found by its idempotency-key.
export function findLock({ records }: Model, { by, values }: Call, coupon: Coupon): Redemption | undefined {
  const named = records.find(({ call }) => call.by.scope === by.scope && call.requestId === values["lock_request_id"]);
  if (named === undefined || !["lock", "redeem"].includes(named.call.operation) || named.status !== 200)
    return undefined;
  const { redemption } = JSON.parse(named.text);
  return coupon.redemptions.find(({ id }) => id === redemption);
}

// The coupon of a void or query, or the refusal.
export function findOwnCoupon(model: Model, call: Call): { coupon: Coupon } | Expected {
  const { merchant } = call.values;
  if (!mayActFor(call.by, merchant)) return notFound("merchant");
  const coupon = findCoupon(model, call);
  if (coupon === undefined) return notFound("coupon");
  return isInScope(coupon, merchant) ? { coupon } : refuse(422, "MERCHANT_NOT_IN_SCOPE");
}

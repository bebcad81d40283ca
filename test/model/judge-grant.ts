// Lock and redeem.
import { invalid, isoTime, notFound, ok, refuse, uuidId, type Call, type Expected } from "./call.ts";
import { addEvent, isLive, isOver, statusOf, type Coupon } from "./coupon.ts";
import { computeDiscount, findBadAmount, toAmount, type Basket } from "./discount.ts";
import { kindOf, stores, validFrom } from "./kinds.ts";
import { findCoupon, isInScope, lockMark, mayActFor } from "./lookup.ts";
import type { Model } from "./knowledge.ts";

export function judgeGrant(model: Model, call: Call): Expected {
  const { by, values } = call;
  const { unit } = model.setup;
  if (!mayActFor(by, values["merchant"])) return notFound("merchant");
  const coupon = findCoupon(model, call);
  if (coupon === undefined) return notFound("coupon");
  const terms = kindOf(coupon.kind);
  const unknownPlace = findUnknownPlace(model, call);
  if (unknownPlace !== null) return unknownPlace;
  const badAmount = findBadAmount(values as Basket, terms, unit);
  if (badAmount !== null) return invalid(badAmount);
  if (!isInScope(coupon, values["merchant"])) return refuse(422, "MERCHANT_NOT_IN_SCOPE");
  const refusal = checkState(coupon, call);
  if (refusal !== null) return refusal;
  const discount = computeDiscount(values as Basket, terms, unit);
  if ("code" in discount)
    return refuse(422, discount.code, discount.missing === undefined ? null : { missing: discount.missing });
  return grant(coupon, call, discount.minor, toAmount(discount.minor, terms.currency, unit));
}

function findUnknownPlace({ setup }: Model, { values: { merchant, store, terminal } }: Call): Expected | null {
  if (setup.variant === "A" || store === undefined) return null;
  const terminals = stores[merchant as string]?.[store as string];
  if (terminals === undefined) return notFound("store");
  return terminal === undefined || terminals.includes(terminal as string) ? null : notFound("terminal");
}

function checkState(coupon: Coupon, { by, requestId }: Call): Expected | null {
  if (coupon.marks.has(lockMark(by.scope, requestId))) return refuse(409, "LOCK_CANCELLED");
  const status = statusOf(coupon);
  if (status === "VOIDED" || status === "REDEEMED") return refuse(409, `COUPON_${status}`);
  if (isOver(coupon)) return refuse(409, "COUPON_EXPIRED");
  if (status === "LOCKED")
    return refuse(409, "COUPON_LOCKED", { lock_expires_at: coupon.redemptions.find(isLive)!.lockExpiresAt });
  if (!coupon.isReleased) return refuse(409, "COUPON_NOT_RELEASED");
  return coupon.validFrom === validFrom.later ? refuse(409, "COUPON_NOT_YET_VALID") : null;
}

function grant(coupon: Coupon, { values, requestId, operation }: Call, minor: number, amount: number): Expected {
  const isLock = operation === "lock";
  const fields = { redemption: uuidId("red"), discount_amount: amount, ...(isLock && { lock_expires_at: isoTime }) };
  return ok(fields, ({ json }) => {
    coupon.redemptions.push({
      id: json.redemption,
      lockId: requestId,
      merchant: values["merchant"] as string,
      minor,
      lockExpiresAt: json.lock_expires_at ?? null,
      status: isLock ? "LOCKED" : "REDEEMED",
      isPastEnd: false,
    });
    if (!isLock) addEvent(coupon, "redeemed", json.redemption);
  });
}

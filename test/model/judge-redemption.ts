// Confirm and cancel of a lock, and reverse of a redemption.
import { notFound, ok, refuse, uuidId, type Call, type Expected } from "./call.ts";
import { addEvent, free, type Redemption } from "./coupon.ts";
import { findCoupon, findLock, isInScope, lockMark, mayActFor } from "./lookup.ts";
import type { Model } from "./knowledge.ts";

// Why a lock cannot be confirmed or cancelled.
function checkLock(lock: Redemption): Expected | null {
  if (lock.status === "LOCKED") return lock.isPastEnd ? refuse(409, "LOCK_EXPIRED") : null;
  return refuse(409, lock.status === "CANCELLED" ? "LOCK_CANCELLED" : "LOCK_CONFIRMED");
}

export function judgeConfirm(model: Model, call: Call): Expected {
  const { merchant } = call.values;
  if (!mayActFor(call.by, merchant)) return notFound("merchant");
  const coupon = findCoupon(model, call);
  if (coupon === undefined) return notFound("coupon");
  const lock = findLock(model, call, coupon);
  if (lock === undefined || lock.merchant !== merchant)
    return isInScope(coupon, merchant) ? refuse(409, "LOCK_NOT_FOUND") : refuse(422, "MERCHANT_NOT_IN_SCOPE");
  return (
    checkLock(lock) ??
    ok({ redemption: lock.id, status: "REDEEMED" }, () => {
      lock.status = "REDEEMED";
      addEvent(coupon, "redeemed", lock.id);
    })
  );
}

export function judgeCancel(model: Model, call: Call): Expected {
  const coupon = findCoupon(model, call);
  if (coupon === undefined) return notFound("coupon");
  const lock = findLock(model, call, coupon);
  if (lock === undefined) {
    const learn = () => void coupon.marks.add(lockMark(call.by.scope, call.values["lock_request_id"]));
    return { ...refuse(409, "LOCK_NOT_FOUND"), learn };
  }
  return (
    checkLock(lock) ??
    ok({ redemption: lock.id, status: "CANCELLED" }, () => {
      lock.status = "CANCELLED";
      free(coupon);
    })
  );
}

export function judgeReverse({ coupons }: Model, { by, values }: Call): Expected {
  const isMeant = ({ id }: Redemption) => id === values["redemption"];
  const coupon = coupons.find(({ redemptions }) => redemptions.some(isMeant));
  const redemption = coupon?.redemptions.find(isMeant);
  if (coupon === undefined || redemption === undefined || !mayActFor(by, redemption.merchant))
    return notFound("redemption");
  if (redemption.status === "REVERSED") return refuse(409, "REDEMPTION_REVERSED");
  if (redemption.status !== "REDEEMED") return refuse(409, "REDEMPTION_NOT_REVERSIBLE");
  return ok({ redemption: redemption.id, reversal: uuidId("rvs"), status: "REVERSED" }, () => {
    redemption.status = "REVERSED";
    addEvent(coupon, "reversed", redemption.id);
    free(coupon);
  });
}

// A coupon of the model: its states, what was told of it, and what time and a DBA do to it. Time comes as a patch: a lock
// is past its end, or an end of validity has moved. So nothing in here has a clock.
import type { Variant } from "../../src/gate/gate.ts";
import { kindOf, validFrom, validTo, type KindName } from "./kinds.ts";

export type Redemption = {
  id: string;
  scope: string;
  lockId: string;
  merchant: string;
  minor: number;
  lockExpiresAt: string | null;
  // A lock past its end stays LOCKED here: whether that has been written down makes no difference to anybody.
  status: "LOCKED" | "CANCELLED" | "REDEEMED" | "REVERSED";
  isPastEnd: boolean;
};
// An expiry is told by a job that runs when it likes: where the coupon came back to life before, perhaps never.
export type Told = { type: string; redemption: string | null; isCertain: boolean };
export type Coupon = {
  code: string;
  id: string;
  kind: KindName;
  batch: string;
  variant: Variant;
  isReleased: boolean;
  isVoided: boolean;
  validFrom: string;
  validTo: string;
  isExpiryTold: boolean;
  redemptions: Redemption[];
  told: Told[];
  // Of locks that were cancelled before they came.
  marks: Set<string>;
};
export type Minted = { code: string; id: string; batch: string };

export function newCoupon(kind: KindName, variant: Variant, minted: Minted): Coupon {
  const { isLater, isUnreleased } = kindOf(kind);
  return {
    ...minted,
    kind,
    variant,
    isReleased: isUnreleased !== true,
    isVoided: false,
    isExpiryTold: false,
    redemptions: [],
    marks: new Set(),
    told: [],
    validFrom: isLater === true ? validFrom.later : validFrom.usual,
    validTo: validTo.usual,
  };
}

export const isOver = (coupon: Coupon) => coupon.validTo === validTo.past;
export const isLive = ({ status, isPastEnd }: Redemption) =>
  status === "REDEEMED" || (status === "LOCKED" && !isPastEnd);

export function statusOf(coupon: Coupon): string {
  const { isVoided, redemptions, kind, isReleased, variant } = coupon;
  if (isVoided) return "VOIDED";
  if (redemptions.some(({ status }) => status === "REVERSED") && kindOf(kind).isReissued !== true) return "REDEEMED";
  const live = redemptions.find(isLive);
  if (live !== undefined) return live.status;
  if (isOver(coupon)) return "EXPIRED";
  return !isReleased && variant === "B" ? "CREATED" : "ISSUED";
}

export function tell(coupon: Coupon, type: string, redemption: string | null = null, isCertain = true): void {
  coupon.told.push({ type: `coupon.${type}`, redemption, isCertain });
}

// Its lock or redemption is over: past its end of validity it expires with that.
export function free(coupon: Coupon): void {
  if (statusOf(coupon) === "EXPIRED") expire(coupon);
}

function expire(coupon: Coupon): void {
  coupon.isExpiryTold = true;
  tell(coupon, "expired");
}

const isExpiryDue = (coupon: Coupon) => statusOf(coupon) === "EXPIRED" && coupon.isReleased && !coupon.isExpiryTold;

// What happens to a coupon without a call. The answer: the SQLSTATE with which it is refused.
export const patches = {
  lapse({ redemptions }: Coupon): null {
    for (const redemption of redemptions) if (redemption.status === "LOCKED") redemption.isPastEnd = true;
    return null;
  },
  begin(coupon: Coupon): null {
    coupon.validFrom = validFrom.usual;
    return null;
  },
  extend(coupon: Coupon, to: keyof typeof validTo): string | null {
    if (["REDEEMED", "VOIDED"].includes(statusOf(coupon))) return "CP409";
    if (validTo[to] <= coupon.validFrom) return "23514";
    const isBack = validTo[to] !== validTo.past;
    if (isBack && isExpiryDue(coupon)) tell(coupon, "expired", null, false);
    if (isBack) coupon.isExpiryTold = false;
    coupon.validTo = validTo[to];
    return null;
  },
  release(coupon: Coupon): string | null {
    const lock = coupon.redemptions.find((redemption) => redemption.status === "LOCKED" && isLive(redemption));
    if (lock === undefined) return "CP409";
    lock.status = "CANCELLED";
    free(coupon);
    return null;
  },
  withdraw(coupon: Coupon): string | null {
    if (!["ISSUED", "CREATED"].includes(statusOf(coupon))) return "CP409";
    coupon.isVoided = true;
    tell(coupon, "voided");
    return null;
  },
};
export type Patch = keyof typeof patches;

// The worker writes down what time has done.
export function work(coupons: Coupon[]): void {
  for (const coupon of coupons) if (isExpiryDue(coupon)) expire(coupon);
}

// A coupon of the model: its states, its events, and what time and a DBA do to it. Time passes by a patch: a lock is
// past its end, or the end of validity moves. So the model needs no clock.
import type { Variant } from "../../src/gate/gate.ts";
import { kindOf, validFrom, validTo, type KindName } from "./kinds.ts";

export type Redemption = {
  id: string;
  lockId: string;
  merchant: string;
  minor: number;
  lockExpiresAt: string | null;
  // A lock past its end stays LOCKED here, because no caller can see whether the service has recorded its expiry.
  status: "LOCKED" | "CANCELLED" | "REDEEMED" | "REVERSED";
  isPastEnd: boolean;
};
// isCertain: a job writes the event of an expiry some time later. It writes none if the coupon becomes valid again
// before that.
export type ExpectedEvent = { type: string; redemption: string | null; isCertain: boolean };
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
  hasExpiryEvent: boolean;
  redemptions: Redemption[];
  events: ExpectedEvent[];
  // Locks that were cancelled before they came.
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
    hasExpiryEvent: false,
    redemptions: [],
    marks: new Set(),
    events: [],
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

export function addEvent(coupon: Coupon, type: string, redemption: string | null = null, isCertain = true): void {
  coupon.events.push({ type: `coupon.${type}`, redemption, isCertain });
}

// The lock or redemption has ended. Past its end of validity the coupon expires now.
export function free(coupon: Coupon): void {
  if (statusOf(coupon) === "EXPIRED") expire(coupon);
}

function expire(coupon: Coupon): void {
  coupon.hasExpiryEvent = true;
  addEvent(coupon, "expired");
}

const isExpiryDue = (coupon: Coupon) => statusOf(coupon) === "EXPIRED" && coupon.isReleased && !coupon.hasExpiryEvent;

// Changes to a coupon without a call. Each returns the SQLSTATE of its refusal, or null.
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
    if (validTo[to] <= coupon.validFrom) return "CP400";
    const isBack = validTo[to] !== validTo.past;
    if (isBack && isExpiryDue(coupon)) addEvent(coupon, "expired", null, false);
    if (isBack) coupon.hasExpiryEvent = false;
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
    addEvent(coupon, "voided");
    return null;
  },
};
export type Patch = keyof typeof patches;

// The worker expires the coupons that are due.
export function work(coupons: Coupon[]): void {
  for (const coupon of coupons) if (isExpiryDue(coupon)) expire(coupon);
}

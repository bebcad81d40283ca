// A coupon of the model: its states, its events, and what time and a DBA do to it. Time passes by a patch: a lock is
// past its end, or the end of validity moves. So the model needs no clock.
import type { Variant } from "../../../src/gate/gate.ts";
import { validFrom, validTo, type End, type Kind } from "./setup.ts";

export type Redemption = {
  id: string;
  lockId: string;
  merchant: string;
  minor: number;
  // A pattern if the answer of the lock is unknown.
  lockExpiresAt: string | RegExp | null;
  // A lock past its end stays LOCKED here, because no caller can see whether the service has recorded its expiry.
  status: "LOCKED" | "CANCELLED" | "REDEEMED" | "REVERSED";
  isPastEnd: boolean;
};
export type Minted = { code: string; id: string; batch: string };
export type Coupon = Minted & {
  kind: Kind;
  variant: Variant;
  isReleased: boolean;
  isVoided: boolean;
  isSuspended: boolean;
  isRecalled: boolean;
  validFrom: string;
  validTo: string;
  hasExpiryEvent: boolean;
  redemptions: Redemption[];
  // The type and, if there is one, the redemption.
  events: string[];
  // Locks that were cancelled before they came.
  marks: Set<string>;
};

export function newCoupon(kind: Kind, variant: Variant, minted: Minted): Coupon {
  const { isLater, isUnreleased } = kind;
  return {
    ...minted,
    kind,
    variant,
    isReleased: isUnreleased !== true,
    isVoided: false,
    isSuspended: false,
    isRecalled: false,
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

// Nothing that happens to the copy happens to the coupon.
export const copyOf = (coupon: Coupon): Coupon => ({
  ...coupon,
  redemptions: coupon.redemptions.map((redemption) => ({ ...redemption })),
  events: [...coupon.events],
  marks: new Set(coupon.marks),
});

export function statusOf(coupon: Coupon): string {
  const { isVoided, redemptions, kind, isReleased, variant } = coupon;
  if (isVoided) return "VOIDED";
  if (redemptions.some(({ status }) => status === "REVERSED") && kind.isReissued !== true) return "REDEEMED";
  const live = redemptions.find(isLive);
  if (live !== undefined) return live.status;
  if (isOver(coupon)) return "EXPIRED";
  return !isReleased && variant === "B" ? "CREATED" : "ISSUED";
}

export function addEvent(coupon: Coupon, type: string, redemption = ""): void {
  coupon.events.push(`coupon.${type} ${redemption}`.trim());
}

// Past its end of validity a coupon expires as soon as nothing holds it: at the end of a lock or redemption, or else
// when the worker comes by.
function expireIfDue(coupon: Coupon): void {
  if (statusOf(coupon) !== "EXPIRED" || !coupon.isReleased || coupon.hasExpiryEvent) return;
  coupon.hasExpiryEvent = true;
  addEvent(coupon, "expired");
}

// What becomes of a coupon that nothing holds any more. In a recalled batch it is voided, unless it has expired.
export function settle(coupon: Coupon): void {
  expireIfDue(coupon);
  if (coupon.isRecalled && ["CREATED", "ISSUED"].includes(statusOf(coupon))) {
    coupon.isVoided = true;
    addEvent(coupon, "voided");
  }
}

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
  extend(coupon: Coupon, to: End): string | null {
    if (coupon.isRecalled || ["REDEEMED", "VOIDED"].includes(statusOf(coupon))) return "CP409";
    if (validTo[to] <= coupon.validFrom) return "CP400";
    if (to !== "past") coupon.hasExpiryEvent = false;
    coupon.validTo = validTo[to];
    return null;
  },
  release(coupon: Coupon): string | null {
    const lock = coupon.redemptions.find((redemption) => redemption.status === "LOCKED" && isLive(redemption));
    if (lock === undefined) return "CP409";
    lock.status = "CANCELLED";
    settle(coupon);
    return null;
  },
};
export type Patch = keyof typeof patches;

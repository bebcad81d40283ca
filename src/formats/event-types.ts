/** The types of events, as in feeds and webhooks. */
export const eventTypes = [
  "coupon.redeemed",
  "coupon.reversed",
  "coupon.voided",
  "coupon.expired",
  "batch.generated",
  "allocation.completed",
  "reconciliation.ready",
] as const;

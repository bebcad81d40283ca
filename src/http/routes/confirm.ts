import { z } from "zod";
import { madeId, ok } from "../answer-fields.ts";
import { coupon, externalId, requestId } from "../fields.ts";
import type { Route } from "../route.ts";

const input = z.strictObject({ request_id: requestId, lock_request_id: requestId, coupon, merchant: externalId });

const answer = z.object({ ok, redemption: madeId("red"), status: z.literal("REDEEMED") });

export const confirm: Route = {
  operation: "confirm",
  summary: "Completes the redemption of a lock.",
  description:
    "Call it when the payment is certain, with the `request_id` of the lock. After `lock_expires_at` the lock is " +
    "gone.",
  method: "POST",
  path: "/v1/coupons/confirm",
  isWrite: true,
  schema: () => input,
  answer: () => answer,
  refusals: () => ["MERCHANT_NOT_IN_SCOPE", "LOCK_NOT_FOUND", "LOCK_EXPIRED", "LOCK_CANCELLED", "LOCK_CONFIRMED"],
  resources: () => ["merchant", "coupon"],
};

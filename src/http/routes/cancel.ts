import { z } from "zod";
import { madeId, ok } from "../answer-fields.ts";
import { coupon, requestId } from "../fields.ts";
import type { Route } from "../route.ts";

const input = z.strictObject({ request_id: requestId, lock_request_id: requestId, coupon });

const answer = z.object({ ok, redemption: madeId("red"), status: z.literal("CANCELLED") });

export const cancel: Route = {
  operation: "cancel",
  summary: "Gives up a lock, so that the coupon can be used again.",
  description:
    "The coupon is ISSUED again, or EXPIRED if its validity is over. For a lock that has not arrived, the cancel " +
    "is refused and leaves a mark, so that the late lock is refused too.",
  method: "POST",
  path: "/v1/coupons/cancel",
  isWrite: true,
  schema: () => input,
  answer: () => answer,
  refusals: () => ["LOCK_NOT_FOUND", "LOCK_EXPIRED", "LOCK_CANCELLED", "LOCK_CONFIRMED"],
  resources: () => ["coupon"],
};

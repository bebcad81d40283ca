import { z } from "zod";
import { madeId, ok } from "../answer-fields.ts";
import { coupon, externalId, optionalText, printable, requestId } from "../fields.ts";
import type { Route } from "../route.ts";

const input = z.strictObject({
  request_id: requestId,
  coupon,
  merchant: externalId,
  reason: optionalText(printable(500)),
});

const answer = z.object({ ok, coupon_id: madeId("cpn"), status: z.literal("VOIDED") });

export const voidCoupon: Route = {
  operation: "void",
  summary: "Makes an unused coupon invalid for good.",
  description: "Variant A voids coupons that are ISSUED, Variant B also those that are CREATED.",
  method: "POST",
  path: "/v1/coupons/void",
  isWrite: true,
  schema: () => input,
  answer: () => answer,
  refusals: () => ["MERCHANT_NOT_IN_SCOPE", "COUPON_NOT_VOIDABLE"],
  resources: () => ["merchant", "coupon"],
};

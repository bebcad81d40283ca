import { z } from "zod";
import { amountOfAnswer, currencyOfAnswer, madeId, ok, timeOfAnswer } from "../answer-fields.ts";
import type { Route } from "../route.ts";
import { redemptionArgs, redemptionRefusals, redemptionResources, redemptionSchema } from "./redemption-input.ts";

const answer = z.object({
  ok,
  redemption: madeId("red"),
  coupon_id: madeId("cpn"),
  discount_amount: amountOfAnswer,
  currency: currencyOfAnswer,
  lock_expires_at: timeOfAnswer,
});

export const lock: Route = {
  operation: "lock",
  summary: "Reserves a coupon for an order and returns the discount.",
  description:
    "Take `discount_amount` off the order, then confirm when the payment is certain, well before " +
    "`lock_expires_at`. If the payment fails, cancel. Until then no other request can use the coupon.",
  method: "POST",
  path: "/v1/coupons/lock",
  isWrite: true,
  schema: redemptionSchema,
  args: redemptionArgs,
  answer: () => answer,
  refusals: redemptionRefusals,
  resources: redemptionResources,
};

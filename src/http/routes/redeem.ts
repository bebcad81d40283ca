import { z } from "zod";
import { amountOfAnswer, currencyOfAnswer, madeId, ok } from "../answer-fields.ts";
import type { Route } from "../route.ts";
import { redemptionArgs, redemptionRefusals, redemptionResources, redemptionSchema } from "./redemption-input.ts";

const answer = z.object({
  ok,
  redemption: madeId("red"),
  coupon_id: madeId("cpn"),
  discount_amount: amountOfAnswer,
  currency: currencyOfAnswer,
});

export const redeem: Route = {
  operation: "redeem",
  summary: "Locks and confirms in one step.",
  description: "For a till whose payment is certain already. The body is that of `lock`.",
  method: "POST",
  path: "/v1/coupons/redeem",
  isWrite: true,
  schema: redemptionSchema,
  args: redemptionArgs,
  answer: () => answer,
  refusals: redemptionRefusals,
  resources: redemptionResources,
};

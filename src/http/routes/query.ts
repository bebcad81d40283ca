import { z } from "zod";
import { amountOfAnswer, chosenId, currencyOfAnswer, madeId, ok, timeOfAnswer } from "../answer-fields.ts";
import { coupon, externalId, optional, requestId } from "../fields.ts";
import type { Route } from "../route.ts";

// A read that uses POST. request_id is optional; error answers repeat it.
const input = z.strictObject({ request_id: optional(requestId), coupon, merchant: externalId });

const common = {
  coupon_id: madeId("cpn"),
  batch_id: chosenId("bat"),
  created_at: timeOfAnswer,
};

const redemption = z
  .object({
    merchant_id: chosenId("mch"),
    status: z.enum(["LOCKED", "REDEEMED", "REVERSED"]),
    started_at: timeOfAnswer,
    discount_amount: amountOfAnswer,
    currency: currencyOfAnswer,
  })
  .describe("The live redemption; if there is none, the last reversed one.");

const statuses = ["ISSUED", "LOCKED", "REDEEMED", "EXPIRED", "VOIDED"] as const;

const inVariantA = z
  .object({
    ...common,
    status: z.enum(statuses),
    valid_from: timeOfAnswer,
    valid_to: timeOfAnswer,
    redemption: redemption.optional(),
  })
  .meta({ id: "CouponOfVariantA" });

const inVariantB = z
  .object({ ...common, status: z.enum(["CREATED", ...statuses]), template_id: chosenId("tpl") })
  .meta({ id: "CouponOfVariantB" });

const answers = { A: z.object({ ok, coupon: inVariantA }), B: z.object({ ok, coupon: inVariantB }) };

export const query: Route = {
  operation: "query",
  summary: "Shows a coupon and changes nothing.",
  method: "POST",
  path: "/v1/coupons/query",
  isWrite: false,
  schema: () => input,
  answer: (variant) => answers[variant],
  refusals: () => ["MERCHANT_NOT_IN_SCOPE"],
  resources: () => ["merchant", "coupon"],
};

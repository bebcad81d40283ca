import { z } from "zod";
import { amountOfAnswer, chosenId, currencyOfAnswer, madeId, ok, timeOfAnswer } from "../answer-fields.ts";
import type { Route } from "../route.ts";
import { querySchema, redemptionArgs, redemptionResources } from "./redemption-input.ts";

const redemption = z
  .object({
    redemption: madeId("red"),
    merchant_id: chosenId("mch"),
    status: z.enum(["LOCKED", "REDEEMED", "REVERSED"]),
    started_at: timeOfAnswer,
    discount_amount: amountOfAnswer,
    currency: currencyOfAnswer,
  })
  .describe(
    "The live redemption; if there is none, the last reversed one. Present only if you may act for its merchant.",
  );

const describeCoupon = (...more: "CREATED"[]) =>
  z.object({
    coupon_id: madeId("cpn"),
    status: z.enum([...more, "ISSUED", "LOCKED", "REDEEMED", "EXPIRED", "VOIDED"]),
    template_id: chosenId("tpl"),
    batch_id: chosenId("bat"),
    created_at: timeOfAnswer,
    valid_from: timeOfAnswer,
    valid_to: timeOfAnswer,
    redemption: redemption.optional(),
  });

const quote = z
  .object({
    redeemable: z.boolean(),
    discount_amount: amountOfAnswer.nullable().describe("Null: not redeemable."),
    currency: currencyOfAnswer,
    code: z.string().nullable().describe("Why a lock would be refused; null: it would succeed."),
    message: z.string().nullable(),
  })
  .describe("What a lock would answer now. Only if the query has `order_amount` or items.")
  .meta({ id: "Quote" });

const answer = (coupon: z.ZodType) => z.object({ ok, coupon, quote: quote.optional() });
const answers = {
  A: answer(describeCoupon().meta({ id: "CouponOfVariantA" })),
  B: answer(describeCoupon("CREATED").meta({ id: "CouponOfVariantB" })),
};

export const query: Route = {
  operation: "query",
  summary: "Shows a coupon, and what a lock would answer for an order. Changes nothing.",
  description:
    "It reserves nothing. With `order_amount` or items, `quote` says whether a lock would succeed now, for how " +
    "much, and if not, why.",
  method: "POST",
  path: "/v1/coupons/query",
  isWrite: false,
  schema: querySchema,
  args: redemptionArgs,
  answer: (variant) => answers[variant],
  refusals: () => ["MERCHANT_NOT_IN_SCOPE"],
  resources: redemptionResources,
};

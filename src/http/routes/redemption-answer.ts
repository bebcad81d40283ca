// A redemption as get_redemption and list_redemptions show it: rules.render_redemption in the database.
import { z } from "zod";
import { amountOfAnswer, chosenId, currencyOfAnswer, madeId, timeOfAnswer } from "../answer-fields.ts";

export const redemption = z.object({
  redemption: madeId("red"),
  status: z.enum(["LOCKED", "REDEEMED", "REVERSED", "CANCELLED", "LAPSED"]),
  coupon_id: madeId("cpn"),
  batch_id: chosenId("bat"),
  template_id: chosenId("tpl"),
  merchant_id: chosenId("mch"),
  store: z.string().nullable(),
  terminal: z.string().nullable(),
  order_id: z.string().nullable(),
  order_amount: amountOfAnswer.nullable(),
  discount_amount: amountOfAnswer,
  currency: currencyOfAnswer,
  lock_request_id: z.string().describe("The request_id of the lock or redeem."),
  started_at: timeOfAnswer,
  lock_expires_at: timeOfAnswer.nullable().describe("Null: redeemed without a lock."),
  redeemed_at: timeOfAnswer.nullable(),
  reversed_at: timeOfAnswer.nullable(),
  reversal: madeId("rvs").nullable(),
  reason: z.string().nullable().describe("The reason of the reversal."),
});

// Events as the feed and webhooks show them: src/formats/event-json.ts.
import { z } from "zod";
import type { EventType } from "../route.ts";
import { amountOfAnswer, chosenId, currencyOfAnswer, date, madeId, timeOfAnswer } from "../answer-fields.ts";

const event_id = madeId("evt").describe("The same in the feed and in every attempt of a webhook.");
const occurred_at = timeOfAnswer;

// rules.describe_data in the database.
const data = z
  .object({
    batch_id: chosenId("bat"),
    template_id: chosenId("tpl"),
    merchant_id: chosenId("mch").nullable(),
    store: z.string().nullable(),
    terminal: z.string().nullable(),
    order_id: z.string().nullable(),
    order_amount: amountOfAnswer.nullable(),
    discount_amount: amountOfAnswer
      .nullable()
      .describe("For a reversal, the discount of its redemption. Never negative."),
    currency: currencyOfAnswer.nullable(),
    reversal_id: madeId("rvs").nullable(),
  })
  .meta({
    id: "EventData",
    description: "Present only if the webhook or the pull asks for it with expand. What does not apply is null.",
  });

const couponEvent = <T extends string>(event_type: T, id: string, redemption_id: z.ZodType) =>
  z
    .object({
      event_id,
      event_type: z.literal(event_type),
      coupon_id: madeId("cpn"),
      redemption_id,
      occurred_at,
      recorded_at: timeOfAnswer,
      data: data.optional(),
    })
    .meta({ id });

const batchEvent = <T extends string>(event_type: T, id: string) =>
  z.object({ event_id, event_type: z.literal(event_type), batch_id: chosenId("bat"), occurred_at }).meta({ id });

const redeemed = couponEvent("coupon.redeemed", "CouponRedeemed", madeId("red"));
const reversed = couponEvent("coupon.reversed", "CouponReversed", madeId("red"));
const expired = couponEvent("coupon.expired", "CouponExpired", z.null());
const voided = couponEvent("coupon.voided", "CouponVoided", z.null());

export const couponEvents = z.discriminatedUnion("event_type", [redeemed, reversed, expired, voided]);

/** What webhooks send. */
export const events: readonly EventType[] = [
  {
    type: "coupon.redeemed",
    summary: "A coupon was redeemed, or its lock confirmed. Sent to the distributor.",
    schema: redeemed,
  },
  { type: "coupon.reversed", summary: "A redemption was reversed. Sent to the distributor.", schema: reversed },
  {
    type: "coupon.expired",
    summary: "The validity of a released coupon ended. Sent to the distributor.",
    schema: expired,
  },
  { type: "coupon.voided", summary: "A coupon was voided. Sent to the distributor.", schema: voided },
  {
    type: "batch.generated",
    summary: "All coupons of a batch are minted. Sent to the maker.",
    schema: batchEvent("batch.generated", "BatchGenerated"),
  },
  {
    type: "allocation.completed",
    summary: "A batch was released. Sent to the distributor.",
    schema: batchEvent("allocation.completed", "AllocationCompleted"),
  },
  {
    type: "reconciliation.ready",
    summary: "The statement of a business day can be downloaded. Sent to the distributor.",
    schema: z
      .object({
        event_id,
        event_type: z.literal("reconciliation.ready"),
        business_date: date,
        distributor_party_id: chosenId("pty"),
        occurred_at,
      })
      .meta({ id: "ReconciliationReady" }),
  },
];

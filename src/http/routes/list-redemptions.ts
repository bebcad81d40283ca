import { z } from "zod";
import { feedCursor, ok, timeOfAnswer } from "../answer-fields.ts";
import { cursor, externalId, limit, moment, optionalText, printable } from "../fields.ts";
import type { Route } from "../route.ts";
import { redemption } from "./redemption-answer.ts";

const period = ["from", "to", "cursor", "limit"] as const;

const input = z
  .strictObject({
    merchant: externalId,
    order_id: optionalText(printable(128)).describe("The redemptions of this order: the newest 100."),
    from: moment.optional().describe("Changes that were recorded from this moment."),
    to: moment.optional().describe("Changes that were recorded before this moment."),
    cursor: cursor(printable(64)).describe("The next_cursor of the page before. Without it: the oldest change."),
    limit: limit.optional(),
  })
  .superRefine((values, context) => {
    const { order_id, from, to } = values;
    const refuse = (field: string, message: string) => context.addIssue({ code: "custom", path: [field], message });
    for (const field of period)
      if (order_id !== undefined && values[field] !== undefined) refuse(field, "must not be sent with order_id");
    if (from !== undefined && to !== undefined && from >= to) refuse("to", "must be later than from");
  });

const change = redemption
  .extend({
    change: z
      .enum(["REDEMPTION", "REVERSAL"])
      .optional()
      .describe("What happened; absent in a list by order_id. The other fields show the redemption as it is now."),
    changed_at: timeOfAnswer.optional().describe("When it was recorded, which decides its business day."),
  })
  .meta({ id: "RedemptionOfList" });

const answer = z.object({
  ok,
  redemptions: z.array(change),
  next_cursor: feedCursor.nullable().describe("The cursor of the next page; opaque. Null in a list by order_id."),
});

export const listRedemptions: Route = {
  operation: "list_redemptions",
  summary: "Lists the redemptions of an order, or all redemptions and reversals of a merchant, oldest first.",
  description:
    "With `order_id`, a returns desk finds what to reverse, newest first, on one page. Without it, each " +
    "redemption and each reversal is an entry, in an order that only grows at its end: store `next_cursor` with " +
    "the entries of its page, and continue from it.",
  method: "GET",
  path: "/v1/redemptions",
  query: ["merchant", "order_id", ...period],
  isWrite: false,
  hasOwnTransaction: true,
  schema: () => input,
  answer: () => answer,
  resources: () => ["merchant"],
};

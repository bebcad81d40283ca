import { z } from "zod";
import { chosenId, date, ok } from "../answer-fields.ts";
import { externalId, optional, requestId } from "../fields.ts";
import type { Route } from "../route.ts";

const input = z.strictObject({
  request_id: requestId,
  distributor: optional(externalId).describe("A party. Variant A needs it if the tenant has several distributors."),
});

const answer = z.object({
  ok,
  distributor_party_id: chosenId("pty"),
  business_date: date.describe("The day that is closed."),
  next_business_date: date.describe("The day that is open now."),
});

export const closeDay: Route = {
  operation: "close_day",
  summary: "Sandbox: closes the open business day of a distributor now.",
  description:
    "What was answered before is in its statement, and later entries go to the next day, also while that one is " +
    "ahead of the calendar. The statement is ready a moment later, as after every other day. In Variant B the " +
    "distributor makes this call.",
  method: "POST",
  path: "/v1/sandbox/close_day",
  isWrite: true,
  hasOwnTransaction: true,
  schema: () => input,
  answer: () => answer,
  refusals: (variant) => ["NOT_A_SANDBOX", ...(variant === "A" ? (["AMBIGUOUS_DISTRIBUTOR"] as const) : [])],
  resources: () => ["distributor"],
};

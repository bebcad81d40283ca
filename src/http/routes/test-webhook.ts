import { z } from "zod";
import { eventTypes } from "../../formats/event-types.ts";
import { madeId, ok } from "../answer-fields.ts";
import { eventType, requestId } from "../fields.ts";
import type { Route } from "../route.ts";
import { partyInBody } from "./webhook-input.ts";

const common = { request_id: requestId, event_type: eventType };
const inVariantA = z.strictObject({ ...common, ...partyInBody });
const inVariantB = z.strictObject(common);

const answer = z.object({ ok, event_id: madeId("evt"), event_type: z.enum(eventTypes) });

export const testWebhook: Route = {
  operation: "test_webhook",
  summary: "Sends a test event to your webhook, which is in no feed, ledger or statement.",
  description:
    "The event has the header `webhook-test: true`, and IDs that exist nowhere. It is tried once; `get_webhook` " +
    "shows the outcome.",
  method: "POST",
  path: "/v1/webhook/test",
  isWrite: true,
  hasOwnTransaction: true,
  schema: (variant) => (variant === "A" ? inVariantA : inVariantB),
  answer: () => answer,
  refusals: () => ["WEBHOOK_DISABLED"],
  resources: () => ["webhook"],
};

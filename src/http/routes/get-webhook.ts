import { z } from "zod";
import { eventTypes } from "../../formats/event-types.ts";
import { chosenId, madeId, ok, timeOfAnswer } from "../answer-fields.ts";
import type { Route } from "../route.ts";
import { partyInQuery } from "./webhook-input.ts";

const inVariantA = z.strictObject(partyInQuery);
const inVariantB = z.strictObject({});

const attempt = z
  .object({
    event_id: madeId("evt"),
    event_type: z.enum(eventTypes),
    attempted_at: timeOfAnswer,
    http_status: z.number().int().nullable().describe("Your answer; null: there was none."),
    reason: z
      .string()
      .nullable()
      .describe("Why the attempt failed: its kind, for people to read; null: it did not fail."),
    next_attempt_at: timeOfAnswer.nullable().describe("When the event is sent again; null: not after this attempt."),
  })
  .meta({ id: "WebhookAttempt" });

const count = z.number().int().min(0).max(10_000);

// rules.render_webhook in the database.
const answer = z.object({
  ok,
  webhook: z.object({
    party_id: chosenId("pty"),
    url: z.string(),
    status: z.enum(["healthy", "failing", "paused", "disabled"]),
    waiting: count.describe("Events that you have not taken yet. Counts to 10,000."),
    parked: count.describe("Events that were given up until they are replayed. Counts to 10,000."),
    attempts: z.array(attempt).max(100).describe("The last ones, newest first."),
  }),
});

export const getWebhook: Route = {
  operation: "get_webhook",
  summary: "Shows the state of deliveries to your webhook.",
  description: "It lists the last 100 attempts, newest first, and says why they failed.",
  method: "GET",
  path: "/v1/webhook",
  query: ["party"],
  isWrite: false,
  hasOwnTransaction: true,
  schema: (variant) => (variant === "A" ? inVariantA : inVariantB),
  answer: () => answer,
  resources: () => ["webhook"],
};

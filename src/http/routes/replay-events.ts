import { z } from "zod";
import { ok } from "../answer-fields.ts";
import { externalId, moment, optional, requestId } from "../fields.ts";
import type { Route } from "../route.ts";
import { partyInBody } from "./webhook-input.ts";

// One event, or those that were recorded from `from` until just before `to`.
type Choice = { event_id?: string | undefined; from?: string | undefined; to?: string | undefined };

const common = {
  request_id: requestId,
  event_id: optional(externalId).describe("One event."),
  from: optional(moment).describe("Events that were recorded from this moment."),
  to: optional(moment).describe("Events that were recorded before this moment, which is later than from."),
};
// The same as checkChoice, in JSON Schema. A `not` leaves the type of the object plain for generators of clients.
const isGiven = (name: string) => ({ required: [name], properties: { [name]: { type: "string" } } });
const [one, from, to] = ["event_id", "from", "to"].map(isGiven);
const isPeriod = { allOf: [from, to] };
const choice = {
  not: { anyOf: [{ allOf: [one, { anyOf: [from, to] }] }, { not: { anyOf: [one, isPeriod] } }] },
};
const inVariantA = z
  .strictObject({ ...common, ...partyInBody })
  .superRefine(checkChoice)
  .meta(choice);
const inVariantB = z.strictObject(common).superRefine(checkChoice).meta(choice);

const answer = z.object({
  ok,
  replayed: z.number().int().min(0).max(10_000).describe("How many events are sent again."),
});

export const replayEvents: Route = {
  operation: "replay_events",
  summary: "Sends events to your webhook again, with the same webhook-id.",
  description:
    "Either one event, or those that were recorded from `from` until just before `to`, whether you took them or " +
    "not.",
  method: "POST",
  path: "/v1/webhook/replay",
  isWrite: true,
  hasOwnTransaction: true,
  schema: (variant) => (variant === "A" ? inVariantA : inVariantB),
  answer: () => answer,
  refusals: () => ["WEBHOOK_DISABLED"],
  resources: () => ["webhook", "event"],
};

function checkChoice({ event_id, from, to }: Choice, context: z.RefinementCtx): void {
  const refuse = (field: keyof Choice, message: string) => context.addIssue({ code: "custom", path: [field], message });
  if (event_id !== undefined) {
    if (from !== undefined) refuse("from", "must not be sent with event_id");
    if (to !== undefined) refuse("to", "must not be sent with event_id");
  } else if (from === undefined && to === undefined) {
    refuse("event_id", "is required, unless from and to are sent");
  } else if (from === undefined || to === undefined) {
    refuse(from === undefined ? "from" : "to", "is required: from and to belong together");
  } else if (from >= to) {
    refuse("to", "must be later than from");
  }
}

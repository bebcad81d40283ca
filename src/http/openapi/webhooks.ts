// The section `webhooks`: what the service sends to a subscriber, one entry per type of event.
import type { EventType } from "../route.ts";
import type { Examples } from "./examples.ts";
import type { Json, SchemaWriter } from "./json-schema.ts";

const text = (name: string, description: string, pattern: string): Json => ({
  name,
  in: "header",
  required: true,
  description,
  schema: { type: "string", pattern },
});

const parameters: Json[] = [
  text("webhook-id", "The event_id, the same in every attempt. Drop events that you have seen.", "^evt_[0-9a-z]{26}$"),
  text(
    "webhook-timestamp",
    "The time of this attempt in Unix seconds. Refuse what is over 5 minutes off.",
    "^[0-9]{10}$",
  ),
  text(
    "webhook-signature",
    "`v1,` and the base64 of the HMAC-SHA256 of `webhook-id.webhook-timestamp.body`, keyed with the base64-decoded " +
      "part of the secret after `whsec_`. A replaced secret signs for 24 hours more: then there are several " +
      "signatures, separated by spaces. Accept the event if one of them is right.",
    "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$",
  ),
  {
    name: "webhook-test",
    in: "header",
    required: false,
    description: "Only in a test event: verify it, answer 2xx, and do nothing else. Its IDs exist nowhere.",
    schema: { const: "true" },
  },
];

export function describeWebhooks(events: readonly EventType[], write: SchemaWriter["write"], examples: Examples): Json {
  return Object.fromEntries(
    events.map(({ type, summary, schema }) => [
      type,
      {
        post: {
          operationId: `on_${type.replaceAll(".", "_")}`,
          summary,
          description: "Verify the signature, store the event, answer 2xx, and do the work afterwards.",
          tags: ["webhooks"],
          // Signed by its own headers, not by those of a request.
          security: [],
          parameters,
          requestBody: {
            required: true,
            content: {
              "application/json": {
                schema: write(schema),
                ...(type in examples.events && { examples: { recorded: { value: examples.events[type] } } }),
              },
            },
          },
          responses: {
            "2XX": { description: "Received. Answer within 15 seconds, once the event is stored." },
            410: { description: "Switches the webhook off." },
            default: { description: "A failure. The event is sent again, up to ten times in three days." },
          },
        },
      },
    ]),
  );
}

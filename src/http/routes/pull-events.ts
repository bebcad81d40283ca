import { z } from "zod";
import { renderEvent, type EventFields } from "../../formats/event-json.ts";
import { cursor, limit, printable } from "../fields.ts";
import type { Route } from "../route.ts";
import { feedCursor } from "../answer-fields.ts";
import { couponEvents } from "./event.ts";

// The database checks the cursor's form and refuses one beyond the end of the caller's feed. It cannot recognise a
// cursor of another feed.
const input = z.strictObject({
  cursor: cursor(printable(64)).describe("The next_cursor of the page before. Without it: the oldest event."),
  limit: limit.optional(),
  expand: z
    .enum(["true", "false"], "must be true or false")
    .transform((value) => value === "true")
    .meta({ type: "boolean", enum: undefined, description: "Whether the events have data; by default false." })
    .optional(),
});

const answer = z.object({
  events: z.array(couponEvents),
  next_cursor: feedCursor.describe("The cursor of the next page; opaque."),
});

export const pullEvents: Route = {
  operation: "pull_events",
  summary: "Returns a page of coupon events, oldest first.",
  description:
    "Store `next_cursor` together with the events, and continue from it. At the end of the feed it is the cursor " +
    "that you sent. Batch and statement events come by webhook only.",
  method: "GET",
  path: "/v1/events",
  query: ["cursor", "limit", "expand"],
  isWrite: false,
  hasOwnTransaction: true,
  schema: () => input,
  answer: () => answer,
  render(body) {
    const page = JSON.parse(body) as { events: EventFields[]; next_cursor: string };
    return `{"events":[${page.events.map(renderEvent).join(",")}],"next_cursor":"${page.next_cursor}"}`;
  },
};

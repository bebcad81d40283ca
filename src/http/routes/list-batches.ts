import { z } from "zod";
import { feedCursor, ok } from "../answer-fields.ts";
import { cursor, externalId, limit, printable } from "../fields.ts";
import type { Route } from "../route.ts";
import { batch } from "./batch-answer.ts";

const statuses = ["PENDING", "COMPLETED", "ALLOCATED"] as const;

const input = z.strictObject({
  status: z.enum(statuses, `must be one of ${statuses.join(", ")}`).optional(),
  template: externalId.optional().describe("Only batches of this template."),
  cursor: cursor(printable(64)).describe("The next_cursor of the page before. Without it: the newest batch."),
  limit: limit.optional(),
});

const answer = z.object({
  ok,
  batches: z.array(batch),
  next_cursor: feedCursor.nullable().describe("The cursor of the next page; opaque. Null: there is none."),
});

export const listBatches: Route = {
  operation: "list_batches",
  summary: "Lists batches, newest first.",
  description:
    "In Variant A those of the tenant; in Variant B those that you make, and those that were released to you as " +
    "distributor. On the last page, `next_cursor` is null.",
  method: "GET",
  path: "/v1/batches",
  query: ["status", "template", "cursor", "limit"],
  isWrite: false,
  hasOwnTransaction: true,
  schema: () => input,
  answer: () => answer,
};

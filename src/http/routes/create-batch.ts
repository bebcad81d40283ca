import { z } from "zod";
import { externalId, optional, requestId } from "../fields.ts";
import type { Route } from "../route.ts";
import { batchAnswer } from "./batch-answer.ts";

const total = "must be an integer from 1 to 10000000";

const input = z.strictObject({
  request_id: requestId,
  template: externalId,
  total_count: z.number().int(total).min(1, total).max(10_000_000, total),
  distributor: optional(externalId).describe("A party. Without it: the distributor of the template, else the maker."),
});

export const createBatch: Route = {
  operation: "create_batch",
  summary: "Orders coupons of a template. The service mints them in the background.",
  description:
    "Ask `get_batch` every few seconds until the batch is COMPLETED, or wait for the event `batch.generated`. " +
    "Then release it with `allocate_batch`.",
  method: "POST",
  path: "/v1/batches",
  isWrite: true,
  hasOwnTransaction: true,
  schema: () => input,
  // All codes of a batch are made with the key that is current when the batch is created.
  args: (values, keys) => ({ ...values, key_version: keys.current }),
  answer: () => batchAnswer,
  refusals: () => ["TEMPLATE_EXPIRED"],
  resources: () => ["template", "distributor"],
};

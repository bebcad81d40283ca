import { z } from "zod";
import { externalId, requestId } from "../fields.ts";
import type { Route } from "../route.ts";

const total = "must be an integer from 1 to 10000000";

const input = z.strictObject({
  request_id: requestId,
  template: externalId,
  total_count: z.number().refine((value) => Number.isInteger(value) && value >= 1 && value <= 10_000_000, total),
  distributor: externalId.optional(),
});

export const createBatch: Route = {
  operation: "create_batch",
  method: "POST",
  path: "/v1/batches",
  isWrite: true,
  hasOwnTransaction: true,
  reveals: "nothing",
  schema: () => input,
  // All codes of a batch are made with the key that is current when the batch is created.
  args: (values, keys) => ({ ...values, key_version: keys.current }),
};

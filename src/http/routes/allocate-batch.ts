import { z } from "zod";
import { externalId, requestId } from "../fields.ts";
import type { Route } from "../route.ts";
import { batchAnswer } from "./batch-answer.ts";

const input = z.strictObject({ request_id: requestId, batch: externalId });

export const allocateBatch: Route = {
  operation: "allocate_batch",
  summary: "Releases a whole finished batch to its distributor.",
  description: "Only released coupons can be redeemed.",
  method: "POST",
  path: "/v1/batches/allocate",
  isWrite: true,
  hasOwnTransaction: true,
  schema: () => input,
  answer: () => batchAnswer,
  refusals: () => ["BATCH_SUSPENDED", "BATCH_NOT_COMPLETED", "BATCH_ALREADY_ALLOCATED"],
  resources: () => ["batch"],
};

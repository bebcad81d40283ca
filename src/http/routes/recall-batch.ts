import type { Route } from "../route.ts";
import { batchAnswer, batchInput } from "./batch-answer.ts";

export const recallBatch: Route = {
  operation: "recall_batch",
  summary: "Suspends a batch for good and voids its unused coupons in the background.",
  method: "POST",
  path: "/v1/batches/recall",
  isWrite: true,
  hasOwnTransaction: true,
  schema: () => batchInput,
  answer: () => batchAnswer,
  resources: () => ["batch"],
};

import type { Route } from "../route.ts";
import { batchAnswer, batchInput } from "./batch-answer.ts";

export const recallBatch: Route = {
  operation: "recall_batch",
  summary: "Suspends a batch for good and voids its unused coupons in the background.",
  description:
    "A locked coupon can still be confirmed; it is voided when its lock ends without a confirm. `get_batch` " +
    "shows the progress.",
  method: "POST",
  path: "/v1/batches/recall",
  isWrite: true,
  hasOwnTransaction: true,
  schema: () => batchInput,
  answer: () => batchAnswer,
  resources: () => ["batch"],
};

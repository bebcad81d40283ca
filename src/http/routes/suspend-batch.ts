import type { Route } from "../route.ts";
import { batchAnswer, batchInput } from "./batch-answer.ts";

export const suspendBatch: Route = {
  operation: "suspend_batch",
  summary: "Stops a batch: its coupons can be neither locked nor redeemed until it is resumed.",
  description:
    "For example when its codes have leaked. When you get the answer, no other redemption can follow, at any " +
    "till. Locked coupons can still be confirmed.",
  method: "POST",
  path: "/v1/batches/suspend",
  isWrite: true,
  hasOwnTransaction: true,
  schema: () => batchInput,
  answer: () => batchAnswer,
  resources: () => ["batch"],
};

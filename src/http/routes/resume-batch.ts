import type { Route } from "../route.ts";
import { batchAnswer, batchInput } from "./batch-answer.ts";

export const resumeBatch: Route = {
  operation: "resume_batch",
  summary: "Ends the suspension of a batch.",
  description: "The suspension of a recalled batch never ends. If the batch is not suspended, this changes nothing.",
  method: "POST",
  path: "/v1/batches/resume",
  isWrite: true,
  hasOwnTransaction: true,
  schema: () => batchInput,
  answer: () => batchAnswer,
  refusals: () => ["BATCH_SUSPENDED"],
  resources: () => ["batch"],
};

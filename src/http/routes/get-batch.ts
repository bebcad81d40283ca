import { z } from "zod";
import { externalId } from "../fields.ts";
import type { Route } from "../route.ts";
import { batchAnswer } from "./batch-answer.ts";

const input = z.strictObject({ batch: externalId });

export const getBatch: Route = {
  operation: "get_batch",
  summary: "Shows a batch.",
  description:
    "PENDING is being minted, COMPLETED is minted, ALLOCATED is released. After a recall, `recall` shows the " +
    "progress.",
  method: "GET",
  path: "/v1/batches/{batch}",
  isWrite: false,
  schema: () => input,
  answer: () => batchAnswer,
  resources: () => ["batch"],
};

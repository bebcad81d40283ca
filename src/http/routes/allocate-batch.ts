import { z } from "zod";
import { externalId, requestId } from "../fields.ts";
import type { Route } from "../route.ts";

const input = z.strictObject({ request_id: requestId, batch: externalId });

export const allocateBatch: Route = {
  operation: "allocate_batch",
  method: "POST",
  path: "/v1/batches/allocate",
  isWrite: true,
  hasOwnTransaction: true,
  reveals: "nothing",
  schema: () => input,
};

import { z } from "zod";
import { externalId } from "../fields.ts";
import type { Route } from "../route.ts";

const input = z.strictObject({ batch: externalId });

export const getBatch: Route = {
  operation: "get_batch",
  method: "GET",
  path: "/v1/batches/{batch}",
  isWrite: false,
  reveals: "nothing",
  schema: () => input,
};

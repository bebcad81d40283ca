import { z } from "zod";
import { isDate, limit } from "../fields.ts";
import type { Route } from "../route.ts";

const input = z.strictObject({
  cursor: z.string().refine(isDate, "must be a date such as 2026-01-31").optional(),
  limit: limit.optional(),
});

export const listReconciliations: Route = {
  operation: "list_reconciliations",
  method: "GET",
  path: "/v1/reconciliations",
  query: ["cursor", "limit"],
  isWrite: false,
  hasOwnTransaction: true,
  reveals: "nothing",
  schema: () => input,
};

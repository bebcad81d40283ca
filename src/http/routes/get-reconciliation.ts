import { z } from "zod";
import { externalId, isDate } from "../fields.ts";
import type { Route } from "../route.ts";

// Date and kind are parts of the path, so an invalid one is a 404 and not a 400, like a day without a statement. The
// database gets null for it, which matches nothing.
const input = z.strictObject({
  date: z.string().transform((value) => (isDate(value) ? value : null)),
  kind: z.string().transform((value) => (value === "detail" || value === "summary" ? value : null)),
  distributor: externalId.optional(),
});

export const getReconciliation: Route = {
  operation: "get_reconciliation",
  method: "GET",
  path: "/v1/reconciliations/{date}/{kind}",
  query: ["distributor"],
  isWrite: false,
  hasOwnTransaction: true,
  reveals: "nothing",
  isDownload: true,
  schema: () => input,
};

import { z } from "zod";
import { externalId, isDate } from "../fields.ts";
import type { Route } from "../route.ts";

// Date and kind are parts of the path, so an invalid one is a 404 and not a 400, like a day without a statement. The
// database gets null for it, which matches nothing.
const input = z.strictObject({
  date: z
    .string()
    .transform((value) => (isDate(value) ? value : null))
    .meta({ format: "date" }),
  kind: z
    .string()
    .transform((value) => (value === "detail" || value === "summary" ? value : null))
    .meta({ enum: ["detail", "summary"] }),
  distributor: externalId.optional().describe("A party. Variant A needs it if the tenant has several distributors."),
});

export const getReconciliation: Route = {
  operation: "get_reconciliation",
  summary: "Downloads a file of a daily statement as CSV.",
  description:
    "`detail` has a line for each movement, `summary` one for each merchant, template and currency. A statement " +
    "never changes.",
  method: "GET",
  path: "/v1/reconciliations/{date}/{kind}",
  query: ["distributor"],
  isWrite: false,
  hasOwnTransaction: true,
  download: "statement",
  schema: () => input,
  answer: () => z.string(),
  refusals: (variant) => (variant === "A" ? ["AMBIGUOUS_DISTRIBUTOR"] : []),
  resources: () => ["reconciliation"],
};

import { z } from "zod";
import { externalId, isDate } from "../fields.ts";
import type { Route } from "../route.ts";

// Date and kind are part of a path: what is no day and no kind names nothing, which is 404 as for a day without a
// statement, and not 400. The database is asked for null, which it never has.
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
  runsAlone: true,
  reveals: "nothing",
  isDownload: true,
  schema: () => input,
};

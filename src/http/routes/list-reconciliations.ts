import { z } from "zod";
import { chosenId, date, timeOfAnswer } from "../answer-fields.ts";
import { cursor, dateParameter, limit } from "../fields.ts";
import type { Route } from "../route.ts";

const input = z.strictObject({
  cursor: cursor(dateParameter).describe("The next_cursor of the page before."),
  limit: limit.optional(),
});

const file = z.object({
  kind: z.enum(["detail", "summary"]),
  href: z
    .string()
    .regex(/^\/v1\/reconciliations\//)
    .describe("The path of the download."),
  rows: z.number().int().min(0),
  bytes: z.number().int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

const answer = z.object({
  reconciliations: z.array(
    z
      .object({
        business_date: date,
        distributor_party_id: chosenId("pty"),
        closed_at: timeOfAnswer,
        files: z.array(file).length(2),
      })
      .meta({ id: "Reconciliation" }),
  ),
  next_cursor: date.describe("The cursor of the next page."),
});

export const listReconciliations: Route = {
  operation: "list_reconciliations",
  summary: "Lists the closed business days, oldest first.",
  description: "Each day has two files. Check `bytes` and `sha256` after a download, whose path is `href`.",
  method: "GET",
  path: "/v1/reconciliations",
  query: ["cursor", "limit"],
  isWrite: false,
  hasOwnTransaction: true,
  schema: () => input,
  answer: () => answer,
};

// The answer of every operation on a batch, and an entry of list_batches: rules.render_batch in the database. And the
// input of those that stop one.
import { z } from "zod";
import { chosenId, ok, timeOfAnswer } from "../answer-fields.ts";
import { externalId, optionalText, printable, requestId } from "../fields.ts";

export const batch = z
  .object({
    external_id: chosenId("bat"),
    status: z.enum(["PENDING", "COMPLETED", "ALLOCATED"]),
    total_count: z.number().int().min(1).max(10_000_000),
    minted_count: z.number().int().min(0).max(10_000_000),
    maker_party_id: chosenId("pty"),
    distributor_party_id: chosenId("pty"),
    template_id: chosenId("tpl"),
    created_at: timeOfAnswer,
    suspended_at: timeOfAnswer.nullable().describe("Null: not suspended."),
    recall: z
      .object({
        requested_at: timeOfAnswer,
        voided_count: z.number().int().min(0).max(10_000_000),
        finished_at: timeOfAnswer.nullable().describe("Null: still running."),
      })
      .optional()
      .describe("Only of a recalled batch."),
  })
  .meta({ id: "Batch" });

export const batchAnswer = z.object({ ok, batch });

export const batchInput = z.strictObject({
  request_id: requestId,
  batch: externalId,
  reason: optionalText(printable(500)),
});

// The answer of create_batch, get_batch and allocate_batch, and an entry of list_batches: rules.render_batch in the
// database.
import { z } from "zod";
import { chosenId, ok, timeOfAnswer } from "../answer-fields.ts";

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
  })
  .meta({ id: "Batch" });

export const batchAnswer = z.object({ ok, batch });

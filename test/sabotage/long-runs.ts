// Guards whose absence shows only in a long run: the second page, the second restore, a failure that repeats.
import { edit, type Sabotage } from "./sabotage.ts";

export const longRunGuards: Sabotage[] = [
  {
    name: "only the deliveries of the disabled webhook are parked",
    edits: [
      edit(
        "db/code/rules/webhook/disable_webhook.sql",
        "and d.party_id = p_party_id and d.parked_at is null",
        "and d.parked_at is null",
      ),
    ],
    tests: ["test/worker/tasks/deliver-disabled.test.ts"],
  },
  {
    name: "only one webhook is disabled",
    edits: [
      edit(
        "db/code/rules/webhook/disable_webhook.sql",
        "where w.tenant_id = p_tenant_id and w.party_id = p_party_id",
        "where w.tenant_id = p_tenant_id",
      ),
    ],
    tests: ["test/worker/tasks/deliver-disabled.test.ts"],
  },
  {
    name: "an enabled webhook is not paused",
    edits: [edit("db/code/admin/enable_webhook.sql", "disabled_at = null, paused_until = null", "disabled_at = null")],
    tests: ["test/worker/tasks/deliver-disabled.test.ts"],
  },
];

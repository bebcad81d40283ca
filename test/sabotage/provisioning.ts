// Guards of the command apply: what a changed file changes.
import { edit, type Sabotage } from "./sabotage.ts";

export const provisioningGuards: Sabotage[] = [
  {
    name: "the SKUs of a template have no order",
    mayThrow: true,
    edits: [edit("db/code/rules/provisioning/read_template.sql", " order by 1)", ")")],
    tests: ["test/commands/apply-templates.test.ts"],
  },
  {
    name: "a new URL enables a disabled webhook",
    edits: [edit("db/code/rules/provisioning/apply_parties.sql", "disabled_at = null, ", "")],
    tests: ["test/worker/tasks/deliver.test.ts"],
  },
];

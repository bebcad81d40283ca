// Guards of the command apply: what a changed file changes.
import { edit, type Sabotage } from "./sabotage.ts";

export const provisioningGuards: Sabotage[] = [
  {
    name: "the SKUs of a template have no order",
    mayThrow: true,
    edits: [edit("db/code/rules/provisioning/read_template.sql", " order by 1)", ")")],
    tests: ["test/commands/apply-templates.test.ts"],
  },
];

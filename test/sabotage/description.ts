// The API description: it follows the service, and every answer follows it.
import { edit, type Sabotage } from "./sabotage.ts";

const documentTest = "test/openapi/document.test.ts";
const agreeTest = "test/openapi/agree.test.ts";

export const descriptionGuards: Sabotage[] = [
  {
    name: "an operation of the API description",
    edits: [edit("src/http/routes/table.ts", "  getRequest,\n", "")],
    tests: [documentTest],
  },
  {
    name: "a field of an answer in its schema",
    edits: [
      edit("src/http/routes/batch-answer.ts", "    minted_count: z.number().int().min(0).max(10_000_000),\n", ""),
    ],
    tests: [documentTest],
  },
  {
    name: "an error code of an operation in its route",
    edits: [edit("src/http/routes/void.ts", ', "COUPON_NOT_VOIDABLE"', "")],
    tests: [documentTest],
  },
  {
    name: "a field of an answer, which the API description still has",
    edits: [edit("db/code/rules/redemption/render_grant.sql", "rules.format_time(p_lock_expires_at)", "null")],
    tests: ["test/db/api/states.test.ts"],
  },
  {
    name: "a field that the API description lacks",
    edits: [edit("db/code/rules/redemption/render_grant.sql", `',"lock_expires_at"`, `',"secret":1,"lock_expires_at"`)],
    tests: ["test/db/api/states.test.ts"],
  },
  {
    name: "a field that the API description lacks, in the answers of a program to curl and Python",
    edits: [edit("db/code/rules/redemption/render_grant.sql", `',"lock_expires_at"`, `',"secret":1,"lock_expires_at"`)],
    tests: ["test/docs/coupon-life.test.ts"],
  },
  {
    name: "a field that the API description lacks, in the answer to input that is not HTTP",
    edits: [
      edit(
        "src/http/listener.ts",
        "const { body } = toAnswer(problem, requestId);",
        "const body = JSON.stringify({ ...JSON.parse(toAnswer(problem, requestId).body), extra: 1 });",
      ),
    ],
    tests: ["test/http/routing.test.ts"],
  },
  {
    name: "an error code that the API description lacks",
    edits: [edit("db/code/rules/redemption/check_lock.sql", "'LOCK_NOT_FOUND'", "'COUPON_VOIDED'")],
    tests: ["test/db/api/states.test.ts"],
  },
  {
    name: "the limit of a text in the API description",
    edits: [edit("src/http/fields.ts", ".meta({ maxLength: max })", "")],
    tests: [documentTest],
  },
  {
    name: "the limit of a text, as the API description states it",
    edits: [edit("src/http/fields.ts", "[...value].length <= max,", "[...value].length <= max + 1,")],
    tests: [agreeTest],
  },
  {
    name: "the need of a store, as the API description states it",
    edits: [edit("src/http/routes/redemption-input.ts", "value.terminal === undefined || value", "true || value")],
    tests: [agreeTest],
  },
  {
    name: "the policy of the page",
    edits: [edit("src/http/openapi/reference.ts", `  "default-src 'none'",\n`, "")],
    tests: ["test/http/reference.test.ts"],
  },
  {
    name: "DOCS=off",
    edits: [
      edit("src/serve.ts", "hasDocs ? createReference({ routes, events }) : []", "createReference({ routes, events })"),
    ],
    tests: ["test/http/reference.test.ts"],
  },
];

// Guards of tenants, callers and roles.
import { edit, type Sabotage } from "./sabotage.ts";

export const accessGuards: Sabotage[] = [
  {
    name: "tenant in the lookup of a coupon (query)",
    edits: [
      edit("db/code/api/query.sql", "where c.tenant_id = p_call.tenant_id and c.lookup_hash", "where c.lookup_hash"),
    ],
    tests: ["test/db/api/scope.test.ts"],
  },
  {
    name: "tenant in the lookup of a coupon (lock, redeem)",
    behind: "the tenant in rules.hold_coupons, as a 503",
    edits: [
      edit(
        "db/code/rules/redemption/read_redemption_cases.sql",
        "on k.tenant_id = c.tenant_id and k.lookup_hash",
        "on k.lookup_hash",
      ),
    ],
    tests: ["test/db/api/scope.test.ts"],
  },
  {
    name: "tenant in the lookup of a batch",
    edits: [
      edit(
        "db/code/rules/batch/may_use_batch.sql",
        "p_batch.tenant_id is not distinct from p_call.tenant_id",
        "p_batch.tenant_id is not null",
      ),
    ],
    tests: ["test/db/api/scope.test.ts"],
  },
  {
    name: "tenant in the lookup of a merchant",
    edits: [
      edit(
        "db/code/rules/request/find_merchant.sql",
        "where m.tenant_id = p_call.tenant_id and m.external_id",
        "where m.external_id",
      ),
    ],
    tests: ["test/db/api/scope.test.ts"],
  },
  {
    name: "party in the lookup of a feed",
    edits: [
      edit(
        "db/code/api/pull_events.sql",
        "\n      and f.party_id = p_call.caller_id\n      and f.position > v_after",
        " and f.position > v_after",
      ),
    ],
    tests: ["test/http/events.test.ts", "test/fuzz/cursor.test.ts"],
  },
  {
    name: "caller in the lookup of a request",
    edits: [edit("db/code/api/get_request.sql", "     and q.caller_id = p_call.caller_id\n", "")],
    tests: ["test/db/api/scope.test.ts", "test/db/api/get-request.test.ts"],
  },
  {
    name: "rights of the API's role",
    edits: [
      edit(
        "db/grants.sql",
        "grant usage on schema gate to coupon_api;",
        "grant usage on schema gate, admin to coupon_api;\n" +
          "grant execute on all functions in schema admin to coupon_api;",
      ),
    ],
    tests: ["test/db/roles.test.ts"],
  },
];

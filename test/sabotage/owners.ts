// Guards that only owners notice who own rows of the same kind, and the order of refusals.
import { edit, type Sabotage } from "./sabotage.ts";

const reads = ["test/db/api/owners-read.test.ts"];
const writes = ["test/db/api/owners-write.test.ts"];
const calls = ["test/db/admin/owners.test.ts"];
const jobs = ["test/db/admin/owners-jobs.test.ts"];
const books = ["test/db/admin/owners-books.test.ts"];
const provisioning = ["test/db/admin/owners-provisioning.test.ts"];
const order = ["test/db/api/refusal-order.test.ts"];

export const ownerGuards: Sabotage[] = [
  {
    name: "tenant in the list of statements",
    edits: [
      edit("db/code/rules/statement/list_visible_statements.sql", "'A'\n    and s.tenant_id = p_call.tenant_id", "'A'"),
    ],
    tests: reads,
  },
  {
    name: "tenant in the lookup of a feed",
    edits: [
      edit("db/code/rules/feed/read_feed.sql", "where p.tenant_id = p_tenant_id\n      and p.party", "where p.party"),
    ],
    tests: reads,
  },
  {
    name: "tenant in the lookup of a request",
    edits: [
      edit(
        "db/code/api/get_request.sql",
        "where q.tenant_id = p_call.tenant_id\n     and q.caller_id",
        "where q.caller_id",
      ),
    ],
    tests: reads,
  },
  {
    name: "party in the download of a statement",
    edits: [
      edit(
        "db/code/api/get_reconciliation.sql",
        "    and (p_call.variant = 'A' or p.party_id = p_call.caller_id)\n",
        "",
      ),
    ],
    tests: reads,
  },
  ...[
    ["tenant of a batch whose retry is pruned", "b.tenant_id = o.tenant_id\n            and "],
    ["caller of a batch whose retry is pruned", "b.caller_id = o.caller_id\n            and "],
    ["a refused batch create is pruned", "o.http_status <> 200 or "],
  ].map(([name, find]) => ({
    name: name!,
    edits: [edit("db/code/jobs/prune_requests.sql", find!, "")],
    tests: ["test/db/api/retries-by-key.test.ts"],
  })),
  {
    name: "merchant of a delegate",
    edits: [edit("db/code/rules/request/is_delegate.sql", "\n      and d.merchant_id = p_merchant_id", "")],
    tests: reads,
  },
  {
    name: "tenant in the update of a lock that is confirmed",
    behind: "the trigger that compares redemptions and coupons, as a 500",
    edits: [
      edit(
        "db/code/api/confirm.sql",
        "where r.tenant_id = p_call.tenant_id and r.redemption_id",
        "where r.redemption_id",
      ),
    ],
    tests: writes,
  },
  {
    name: "tenant and party of a webhook that is enabled",
    edits: [
      edit(
        "db/code/admin/enable_webhook.sql",
        "where w.tenant_id = v_webhook.tenant_id and w.party_id = v_webhook.party_id",
        "where true",
      ),
    ],
    tests: calls,
  },
  {
    name: "tenant of a redemption in the ledger report",
    edits: [edit("db/code/report/ledger.sql", "     and r.tenant_id = any (array[l.tenant_id])\n", "")],
    tests: calls,
  },
  {
    name: "tenant of a batch that is voided",
    edits: [edit("db/code/admin/void_batch.sql", " and t.tenant_id = v_batch.tenant_id", "")],
    tests: calls,
  },
  {
    name: "merchant of a delegate that is removed",
    edits: [edit("db/code/admin/remove_delegate.sql", "\n    and d.merchant_id = v_pair.merchant_id", "")],
    tests: calls,
  },
  {
    name: "tenant of a delivery that is recorded",
    edits: [
      edit(
        "db/code/jobs/record_deliveries.sql",
        "where d.tenant_id = p_tenant_id\n    and d.party_id = p_party_id\n    and d.event_id = r.event_id\n" +
          "    and r.is_taken",
        "where d.party_id = p_party_id\n    and d.event_id = r.event_id\n    and r.is_taken",
      ),
    ],
    tests: calls,
  },
  {
    name: "tenant of a list of statements for administrators",
    edits: [edit("db/code/admin/list_statements.sql", "on p.tenant_id = s.tenant_id and p.party_id", "on p.party_id")],
    tests: jobs,
  },
  {
    name: "a list of statements for administrators leaves out those that are not ready",
    edits: [edit("db/code/admin/list_statements.sql", "s.ready_at is not null\n    and ", "")],
    tests: books,
  },
  {
    name: "tenant of the books that a list of statements waits for",
    edits: [
      edit("db/code/rules/statement/find_first_unlisted_date.sql", "where b.tenant_id = p_tenant_id;", "where true;"),
    ],
    tests: books,
  },
  {
    name: "distributor of the earlier days that a statement waits for",
    edits: [
      edit(
        "db/code/jobs/finish_statement.sql",
        "      and s.distributor_id = p_distributor_id\n      and s.business_date < p_business_date",
        "      and s.business_date < p_business_date",
      ),
    ],
    tests: books,
  },
  {
    name: "tenant of the merchants that a template names",
    edits: [
      edit(
        "db/code/rules/provisioning/find_template_problems.sql",
        "x.tenant_id = p_tenant.tenant_id and x.external_id",
        "x.external_id",
      ),
    ],
    tests: provisioning,
  },
  {
    name: "party of a webhook that gets another secret",
    edits: [
      edit(
        "db/code/rules/provisioning/apply_parties.sql",
        "\n      and w.party_id = v_id\n      and not",
        "\n      and not",
      ),
    ],
    tests: provisioning,
  },
  ...[
    ["generated secrets of credentials", "(v_kept -> 'credentials') || ", ""],
    ["generated secrets of webhooks", "(v_kept -> 'webhooks') || ", ""],
    ["changes", "v_changed + v_step.changed", "v_step.changed"],
    ["names", "v_tenants := v_tenants || ", "v_tenants := '[]' || "],
  ].map(([what, find, replace]) => ({
    name: `the ${what} of every tenant of a file`,
    edits: [edit("db/code/admin/apply.sql", find!, replace!)],
    tests: provisioning,
  })),
  {
    name: "order of COUPON_EXPIRED and COUPON_LOCKED",
    edits: [
      edit(
        "db/code/rules/redemption/check_redeemable.sql",
        "p_coupon.status = 'EXPIRED' or p_coupon.valid_to <= p_now then 'COUPON_EXPIRED'",
        "p_coupon.status = 'LOCKED' then 'COUPON_LOCKED'\n" +
          "  when p_coupon.status = 'EXPIRED' or p_coupon.valid_to <= p_now then 'COUPON_EXPIRED'",
      ),
    ],
    tests: order,
  },
  {
    name: "order of ORDER_BELOW_MINIMUM and NO_ELIGIBLE_ITEMS",
    edits: [
      edit(
        "db/code/rules/redemption/decide_redemptions.sql",
        "                 when m.order_minor < (m.template).min_order_minor",
        "                 when (m.template).skus is not null and (m.ordered).matching = 0 then 'NO_ELIGIBLE_ITEMS'\n" +
          "                 when m.order_minor < (m.template).min_order_minor",
      ),
    ],
    tests: order,
  },
  {
    name: "order of RATE_LIMITED and INVALID_REQUEST",
    edits: [
      edit("src/http/operation.ts", "isOverBudget = limiter.admit(accessKey, route.reveals);", ""),
      edit(
        "src/http/operation.ts",
        "      return {\n" +
          "        reading: readCall(route, variant, { query, segments, idempotencyKeys, body, input }, keys),",
        "      const reading = readCall(route, variant, { query, segments, idempotencyKeys, body, input }, keys);\n" +
          "      isOverBudget = limiter.admit(accessKey, route.reveals);\n      return {\n        reading,",
      ),
    ],
    tests: ["test/http/refusal-order.test.ts"],
  },
  {
    name: "limit of unknown codes in get_request",
    edits: [edit("src/http/routes/get-request.ts", 'reveals: "any code"', 'reveals: "nothing"')],
    tests: ["test/http/unknown-codes.test.ts"],
  },
  {
    name: "count of unknown codes in get_request",
    edits: [
      edit("db/code/api/get_request.sql", "(rules.restore_answer(q.http_status, q.response)).resource", "null::text"),
    ],
    tests: ["test/http/unknown-codes.test.ts"],
  },
  {
    name: "search for codes in idempotency-key",
    edits: [
      edit(
        "src/http/read-call.ts",
        '    ...idempotencyKeys.map((key) => ({ path: "idempotency-key", value: decodeHeader(key) })),\n',
        "",
      ),
    ],
    tests: ["test/http/code-places.test.ts"],
  },
];

// Guards of the service, each with the change that takes it away and the test files that must see it gone.
//
// Behind many guards stands another one. Then "removed" means this one alone: what counts is that a test sees it missing, be it only by
// the ugly way in which the next guard stops the fault (a 500 instead of a refusal). Where both must be gone to do harm, the two
// together have a line of their own. `behind` says what stands there.
import type { Edit } from "../support/copy.ts";

export type Sabotage = { name: string; behind?: string; edits: Edit[]; tests: string[] };

const edit = (file: string, find: string, replace: string): Edit => ({ file, find, replace });

const rowLock = [
  edit("db/code/rules/coupon/hold_coupons.sql", "      for no key update of k);", "      );"),
  edit("db/code/rules/coupon/hold_coupons.sql", "    for no key update of k skip locked);", "    );"),
];
const uniqueIndex = [
  edit(
    "db/migrations/006-redemptions.sql",
    "create unique index coupon_has_one_live_redemption",
    "create index coupon_has_one_live_redemption",
  ),
];
const requestLock = [
  edit(
    "db/code/rules/request/claim_request.sql",
    "return pg_try_advisory_xact_lock(v_first)\n      and (v_second = v_first or pg_try_advisory_xact_lock(v_second));",
    "return true;",
  ),
  edit("db/code/rules/request/claim_request.sql", "perform pg_advisory_xact_lock(v_first);", ""),
  edit("db/code/rules/request/claim_request.sql", "perform pg_advisory_xact_lock(v_second);", ""),
];

export const sabotages: Sabotage[] = [
  // one coupon, one redemption
  {
    name: "row lock of lock and redeem",
    behind: "the unique index and the triggers, as a 500",
    edits: rowLock,
    tests: ["test/db/races/coupon.test.ts"],
  },
  {
    name: "row lock of confirm, cancel, void and reverse",
    behind: "the transition triggers, as a 500",
    edits: [
      edit(
        "db/code/rules/coupon/hold_coupon.sql",
        "where c.tenant_id = p_call.tenant_id and c.lookup_hash = p_lookup_hash\n    for no key update;",
        "where c.tenant_id = p_call.tenant_id and c.lookup_hash = p_lookup_hash;",
      ),
      edit("db/code/rules/coupon/hold_coupon.sql", "  for no key update skip locked;", "  ;"),
    ],
    tests: ["test/db/races/coupon.test.ts"],
  },
  {
    name: "a held redemption is not waited for in a group",
    edits: [
      edit("db/code/rules/redemption/hold_redemption.sql", "  for no key update skip locked;", "  for no key update;"),
    ],
    tests: ["test/db/races/groups.test.ts"],
  },
  {
    name: "a live redemption by hand holds its coupon",
    edits: [
      edit("db/migrations/009-consistency.sql", "(not v_is_held and c.xmin <> pg_current_xact_id()::xid)", "false"),
    ],
    tests: ["test/db/races/psql.test.ts"],
  },
  {
    name: "what is fixed in use waits for a first use under way",
    edits: [
      edit(
        "db/migrations/003-parties.sql",
        "    perform from core.tenant t where t.tenant_id = old.tenant_id for update;\n",
        "",
      ),
      edit(
        "db/migrations/004-batches.sql",
        "    perform from core.template t where t.tenant_id = old.tenant_id and t.template_id = old.template_id for update;\n",
        "",
      ),
    ],
    tests: ["test/db/races/psql.test.ts"],
  },
  {
    name: "unique index: one live redemption a coupon",
    behind: "the row lock, for whoever takes it",
    edits: uniqueIndex,
    tests: ["test/db/races/psql.test.ts"],
  },
  {
    name: "a new redemption is in the ledger",
    edits: [
      edit(
        "db/migrations/009-consistency.sql",
        "when 'REDEEMED' then c.status = 'REDEEMED' and e.amount_minor = n.discount_minor",
        "when 'REDEEMED' then c.status = 'REDEEMED'",
      ),
    ],
    tests: ["test/db/tables.test.ts"],
  },
  {
    name: "row lock and unique index",
    behind: "the triggers, which do not see other transactions",
    edits: [...rowLock, ...uniqueIndex],
    tests: ["test/db/races/coupon.test.ts"],
  },
  {
    name: "the clock is read after the wait",
    edits: [
      edit(
        "db/code/rules/redemption/decide_redemptions.sql",
        "v_now        timestamptz := clock_timestamp();",
        "v_now        timestamptz := now();",
      ),
    ],
    tests: ["test/db/races/coupon.test.ts"],
  },
  {
    name: "end of validity",
    edits: [edit("db/code/rules/redemption/check_redeemable.sql", " or p_coupon.valid_to <= p_now then", " then")],
    tests: ["test/db/races/coupon.test.ts", "test/db/api/variants.test.ts"],
  },
  {
    name: "rows that never change",
    edits: [
      edit(
        "db/migrations/001-schemas.sql",
        "begin\n  raise exception '%.% keeps its rows",
        "begin\n  return null;\n  raise exception '%.% keeps its rows",
      ),
    ],
    tests: ["test/db/tables.test.ts"],
  },

  // requests and their outcome
  {
    name: "nonce",
    edits: [edit("db/code/gate/perform.sql", "elsif v_call.ordinal = any (v_reused) then", "elsif false then")],
    tests: ["test/db/races/groups.test.ts", "test/db/races/request.test.ts"],
  },
  {
    name: "fields that stand twice in a body",
    edits: [edit("src/http/strict-json.ts", "  if (wrong !== null) throw refuse(wrong);\n", "")],
    tests: ["test/fuzz/body.test.ts"],
  },
  {
    name: "timestamp window",
    edits: [edit("src/crypto/request-signature.ts", "windowSeconds = 300;", "windowSeconds = 300_000;")],
    tests: ["test/crypto/request-signature.test.ts", "test/http/precedence.test.ts"],
  },
  {
    name: "revoked credentials",
    edits: [edit("db/code/rules/request/identify_callers.sql", " and c.revoked_at is null", "")],
    tests: ["test/db/admin/access.test.ts"],
  },
  {
    name: "outcome record",
    edits: [
      edit(
        "db/code/rules/request/record_answers.sql",
        "where (o.answer).http_status in (200, 404, 409, 422)",
        "where false",
      ),
    ],
    tests: ["test/db/api/idempotency.test.ts"],
  },
  {
    name: "equal body",
    edits: [
      edit(
        "db/code/rules/request/claim_requests.sql",
        "(s.request_id is null or (s.operation, s.body_hash) = (c.operation, c.body_hash))",
        "true",
      ),
    ],
    tests: ["test/db/api/idempotency.test.ts"],
  },
  {
    name: "claim of a request_id",
    behind: "the record's primary key, as a 500",
    edits: requestLock,
    tests: ["test/db/races/request.test.ts"],
  },
  {
    name: "order of the two names of a request",
    edits: [
      edit("db/code/rules/request/claim_request.sql", "least(p_call.request_id, v_key)", "p_call.request_id"),
      edit("db/code/rules/request/claim_request.sql", "greatest(p_call.request_id, v_key)", "v_key"),
    ],
    tests: ["test/db/races/request.test.ts"],
  },
  {
    name: "mark of a cancel before its lock",
    edits: [edit("db/code/rules/redemption/check_redeemable.sql", "when p_is_cancelled then", "when false then")],
    tests: ["test/db/api/idempotency.test.ts"],
  },
  {
    name: "group hand-back of a second call for a coupon",
    behind: "the unique index, which fails the group",
    edits: [
      edit(
        "db/code/rules/redemption/decide_redemptions.sql",
        "v_held := array_remove(v_held, (v_case.coupon).lookup_hash);",
        "",
      ),
    ],
    tests: ["test/db/races/groups.test.ts"],
  },
  {
    name: "group hand-back of a second call of a request_id",
    behind: "the record's primary key, which fails the group",
    edits: [
      edit("db/code/rules/request/claim_requests.sql", "if v_names && array[v_name, v_key] then", "if false then"),
    ],
    tests: ["test/db/races/groups.test.ts"],
  },
  {
    name: "tag check of a code",
    behind: "the look-up of its hash, as NOT_FOUND",
    edits: [edit("src/crypto/coupon-code.ts", "return difference === 0;", "return true;")],
    tests: ["test/crypto/coupon-code.test.ts", "test/http/precedence.test.ts"],
  },

  // whose it is
  {
    name: "tenant in the look-up of a coupon (query)",
    edits: [
      edit("db/code/api/query.sql", "where c.tenant_id = p_call.tenant_id and c.lookup_hash", "where c.lookup_hash"),
    ],
    tests: ["test/db/api/scope.test.ts"],
  },
  {
    name: "tenant in the look-up of a coupon (lock, redeem)",
    behind: "the tenant in rules.hold_coupons, as a 503",
    edits: [
      edit(
        "db/code/rules/redemption/decide_redemptions.sql",
        "left join core.coupon k on k.tenant_id = c.tenant_id and k.lookup_hash",
        "left join core.coupon k on k.lookup_hash",
      ),
    ],
    tests: ["test/db/api/scope.test.ts"],
  },
  {
    name: "tenant in the look-up of a batch",
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
    name: "tenant in the look-up of a merchant",
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
    name: "party in the look-up of a feed",
    edits: [
      edit(
        "db/code/api/pull_events.sql",
        " and f.party_id = p_call.caller_id and f.position > v_after",
        " and f.position > v_after",
      ),
    ],
    tests: ["test/http/events.test.ts", "test/fuzz/cursor.test.ts"],
  },
  {
    name: "caller in the look-up of a request",
    edits: [edit("db/code/api/get_request.sql", "     and q.caller_id = p_call.caller_id\n", "")],
    tests: ["test/db/api/scope.test.ts", "test/db/api/get-request.test.ts"],
  },
  {
    name: "rights of the API's role",
    edits: [
      edit(
        "db/grants.sql",
        "grant usage on schema gate to coupon_api;",
        "grant usage on schema gate, admin to coupon_api;\ngrant execute on all functions in schema admin to coupon_api;",
      ),
    ],
    tests: ["test/db/roles.test.ts"],
  },

  // the background
  {
    name: "sequencer order",
    edits: [edit("db/code/rules/feed/append_to_feeds.sql", "order by e.event_seq),", "order by e.event_seq desc),")],
    tests: ["test/worker/tasks/sequence.test.ts", "test/http/events.test.ts"],
  },
  {
    name: "events that commit late",
    edits: [
      edit(
        "db/code/rules/feed/update_event_gaps.sql",
        "select unnest(p_found)) m;",
        "select unnest(p_found)) m\n  where false;",
      ),
    ],
    tests: ["test/worker/tasks/sequence.test.ts"],
  },
  {
    name: "one sequencer at a time",
    behind: "unique positions, as an error",
    edits: [
      edit(
        "db/code/rules/feed/try_sequencer_lock.sql",
        "return pg_try_advisory_xact_lock(hashtextextended('sequencer', 0));",
        "return true;",
      ),
    ],
    tests: ["test/worker/tasks/sequence.test.ts"],
  },
  {
    name: "day rule: no entry into a closed day",
    behind: "closed_day_is_closed, which stops the sequencer",
    edits: [
      edit(
        "db/code/rules/statement/post_entries.sql",
        "greatest(rules.to_local_date(l.recorded_at, p.time_zone), b.open_on)",
        "rules.to_local_date(l.recorded_at, p.time_zone)",
      ),
    ],
    tests: ["test/worker/tasks/sequence.test.ts"],
  },
  {
    name: "day rule: no day is closed before what belongs to it is sequenced",
    edits: [edit("db/code/jobs/close_days.sql", "w.recorded_at < rules.compute_settled_time(v_now))", "false)")],
    tests: ["test/worker/tasks/business-days.test.ts", "test/worker/tasks/close.test.ts"],
  },
  {
    name: "lease of a mint",
    behind: "mint_chunk, which takes the next numbers only",
    edits: [
      edit(
        "db/code/jobs/claim_batch.sql",
        "and (b.mint_lease_until is null or b.mint_lease_until <= clock_timestamp() or b.mint_holder = p_holder)",
        "",
      ),
    ],
    tests: ["test/worker/tasks/mint.test.ts"],
  },
  {
    name: "numbers of a mint",
    behind: "number_is_unique_in_batch, as a collision that never ends",
    edits: [edit("db/code/jobs/mint_chunk.sql", "p_first_number <> v_batch.minted_count + 1 or ", "")],
    tests: ["test/worker/tasks/mint.test.ts"],
  },
  {
    name: "lease of a subscriber",
    edits: [
      edit(
        "db/code/jobs/claim_deliveries.sql",
        "and (w.lease_until is null or w.lease_until <= clock_timestamp() or w.holder = p_holder)",
        "",
      ),
    ],
    tests: ["test/worker/tasks/deliver-lease.test.ts"],
  },
  {
    name: "private addresses of webhooks",
    edits: [edit("src/worker/address-rule.ts", "if (bad !== undefined) callback(", "if (bad === found[-1]) callback(")],
    tests: ["test/worker/address-rule.test.ts", "test/worker/webhook-sender.test.ts"],
  },

  // upgrade and restore
  {
    name: "migrate waits for locks for a moment only",
    edits: [edit("src/migration/run-migrations.ts", "const lockTimeoutMs = 200", "const lockTimeoutMs = 10_000")],
    tests: ["test/migration/migrate.test.ts"],
  },
  {
    name: "what programs call stays for a version",
    edits: [edit("src/migration/load-code.ts", "!names.has(`${schema}.${name}`) && note !== retired,", "false,")],
    tests: ["test/migration/migrate.test.ts"],
  },
  {
    name: "what calls under way look for stays until they are over",
    edits: [
      edit("src/migration/load-code.ts", '  await session.run("rollback to savepoint trial");\n', ""),
      edit("src/migration/load-code.ts", "  return routines;\n", "  return [];\n"),
    ],
    tests: ["test/migration/migrate.test.ts"],
  },
  {
    name: "a program is ready while the next version is rolled out",
    edits: [edit("src/serve.ts", 'code.split(" ").includes(expected.code)', "code === expected.code")],
    tests: ["test/operations/upgrade.test.ts"],
  },
  {
    name: "positions of feeds after a restore",
    edits: [edit("db/code/admin/note_restore.sql", "where f.last_position < s.feed_base;", "where false;")],
    tests: ["test/db/admin/feeds.test.ts", "test/operations/restore.test.ts"],
  },
];

// Guards of authentication, idempotency and the calls of a group.
import { edit, type Sabotage } from "./sabotage.ts";

const requestLock = [
  edit(
    "db/code/rules/request/claim_request.sql",
    "return pg_try_advisory_xact_lock(v_id)\n      and (v_key = v_id or pg_try_advisory_xact_lock(v_key));",
    "return true;",
  ),
  edit("db/code/rules/request/claim_request.sql", "perform pg_advisory_xact_lock(least(v_id, v_key));", ""),
  edit("db/code/rules/request/claim_request.sql", "perform pg_advisory_xact_lock(greatest(v_id, v_key));", ""),
];

export const requestGuards: Sabotage[] = [
  {
    name: "nonce",
    edits: [
      edit("db/code/rules/request/claim_requests.sql", "and cardinality(p_reused) = 0 and", "and"),
      edit("db/code/rules/request/claim_requests.sql", "\n          and c.ordinal <> all (p_reused)) w", ") w"),
    ],
    tests: ["test/db/races/groups.test.ts", "test/db/races/request.test.ts"],
  },
  {
    name: "a retry across a rotation of the master key",
    edits: [edit("src/http/operation.ts", "of keys.others)", "of [] as string[])")],
    tests: ["test/operations/retries-across-keys.test.ts"],
  },
  {
    name: "a key is in use while one of its codes is locked",
    edits: [edit("db/code/rules/coupon/expire_extended.sql", "\n      and c.status <> 'LOCKED'", "")],
    tests: ["test/worker/tasks/expire-extended.test.ts"],
  },
  {
    name: "the second attempt with another hash spends no nonce",
    edits: [edit("src/http/operation.ts", "{ ...call, nonce: null, body_hash", "{ ...call, body_hash")],
    tests: ["test/operations/retries-across-keys.test.ts"],
  },
  {
    name: "the hash of a webhook's secret by another key",
    edits: [
      edit("db/code/rules/provisioning/apply_parties.sql", "(v_hook -> 'other_hashes', '[]')", "('[]'::jsonb, '[]')"),
    ],
    tests: ["test/commands/reapply.test.ts"],
  },
  {
    name: "the current key hashes a body",
    edits: [edit("src/crypto/body-hash.ts", "version = keys.current", "version = [...keys.versions.keys()].at(-1)!")],
    tests: ["test/operations/retries-across-keys.test.ts"],
  },
  {
    name: "duplicate JSON keys",
    edits: [edit("src/http/strict-json.ts", "  if (wrong !== null) throw refuse(wrong);\n", "")],
    tests: ["test/fuzz/body.test.ts"],
  },
  {
    name: "search for codes in other texts than coupon",
    edits: [
      edit("src/http/read-call.ts", "  refuseCodes(createCodeFinder(keys), listPlaces(route, request, given));\n", ""),
    ],
    tests: ["test/http/code-places.test.ts", "test/operations/canary.test.ts"],
  },
  {
    name: "search for codes in a request_id that an error repeats",
    edits: [edit("src/http/read-call.ts", "success && !containsCode(keys, data)", "success")],
    tests: ["test/http/code-places.test.ts"],
  },
  {
    name: "search for codes in a nonce",
    edits: [edit("src/http/operation.ts", "containsCode(keys, caller.nonce)", "false")],
    tests: ["test/http/code-places.test.ts"],
  },
  {
    name: "a nonce with a code is not stored",
    edits: [edit("src/http/operation.ts", " || isNonceCode) throw", ") throw")],
    tests: ["test/http/code-places.test.ts"],
  },
  {
    name: "search for codes in field names",
    edits: [edit("src/http/code-places.ts", "if (containsCode(name))", "if (false)")],
    tests: ["test/http/code-places.test.ts"],
  },
  {
    name: "limit of candidates for a code",
    edits: [edit("src/crypto/find-code.ts", "candidates > mostCandidates || ", "")],
    tests: ["test/crypto/find-code.test.ts"],
  },
  {
    name: "codes with accents",
    edits: [edit("src/crypto/find-code.ts", 'normalize("NFKD")', 'normalize("NFKC")')],
    tests: ["test/crypto/find-code.test.ts"],
  },
  {
    name: "length of a store before its accents are composed",
    edits: [
      edit("src/http/fields.ts", '  .refine((value) => value.length <= 8 * 64, "must be at most 64 characters")\n', ""),
    ],
    tests: ["test/http/fields.test.ts"],
  },
  {
    name: "refusal of __proto__",
    edits: [edit("src/http/strict-json.ts", 'if (name === "__proto__") return "has a key __proto__";', "")],
    tests: ["test/http/strict-json.test.ts"],
  },
  {
    name: "search for codes in a provisioning file",
    edits: [edit("src/commands/apply.ts", "  refuseCodes(keys, file);\n", "")],
    tests: ["test/commands/apply-codes.test.ts"],
  },
  {
    name: "depth of a body",
    edits: [edit("src/http/strict-json.ts", "const maxDepth = 32", "const maxDepth = 32_000")],
    tests: ["test/http/strict-json.test.ts"],
  },
  {
    name: "further fields in the comparison of retries",
    edits: [edit("src/http/routes/redemption-input.ts", ".looseObject({ items", ".object({ items")],
    tests: ["test/db/api/idempotency.test.ts"],
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
    name: "record of an outcome",
    edits: [
      edit("db/code/rules/request/is_final.sql", "return p_answer.http_status in (200, 404, 409, 422)", "return false"),
    ],
    tests: ["test/db/api/idempotency.test.ts"],
  },
  {
    name: "equal body",
    edits: [
      edit(
        "db/code/rules/request/find_retries.sql",
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
    name: "locking order of request_id and idempotency key",
    edits: [
      edit("db/code/rules/request/claim_request.sql", "least(v_id, v_key)", "v_id"),
      edit("db/code/rules/request/claim_request.sql", "greatest(v_id, v_key)", "v_key"),
    ],
    tests: ["test/db/races/request.test.ts"],
  },
  {
    name: "mark of a cancel before its lock",
    edits: [edit("db/code/rules/redemption/check_redeemable.sql", "when p_is_cancelled then", "when false then")],
    tests: ["test/db/api/idempotency-keys.test.ts"],
  },
  {
    name: "group hand-back of a second call for a coupon",
    behind: "the unique index, which fails the group",
    edits: [edit("db/code/rules/coupon/hold_coupons.sql", "filter (where h.nth = 1)", "")],
    tests: ["test/db/races/groups.test.ts"],
  },
  {
    name: "the request_id of a retry by key names the request",
    edits: [
      edit("db/code/rules/request/claim_requests.sql", "    perform rules.record_retries(p_calls, outcomes);\n", ""),
    ],
    tests: ["test/db/api/retries-by-key.test.ts"],
  },
  {
    name: "a retry by key has the time of the first call",
    edits: [edit("db/code/rules/request/record_retries.sql", "k.recorded_at\n", "clock_timestamp()\n")],
    tests: ["test/db/api/retries-by-key.test.ts"],
  },
  {
    name: "a retry of a batch create by key is kept",
    edits: [edit("db/code/jobs/prune_requests.sql", "            and b.request_id = o.request_id", "")],
    tests: ["test/db/api/retries-by-key.test.ts"],
  },
  {
    name: "a lock by the request_id of a retry: its caller",
    edits: [edit("db/code/rules/redemption/find_lock.sql", "      and q.caller_id = p_call.caller_id\n", "")],
    tests: ["test/db/api/retries-by-key.test.ts"],
  },
  {
    name: "a lock by the request_id of a retry: the lock of that time",
    edits: [edit("db/code/rules/redemption/find_lock.sql", "\n         and r.started_at = q.recorded_at", "")],
    tests: ["test/db/api/retries-by-key.test.ts"],
  },
  {
    name: "a lock by the request_id of a retry: the latest",
    edits: [edit("db/code/rules/redemption/find_lock.sql", " or v_found.ended_at is not null then", " then")],
    tests: ["test/db/api/retries-by-key.test.ts"],
  },
  {
    name: "group hand-back of a second call of a request_id",
    behind: "the record's primary key, which fails the group",
    edits: [edit("db/code/rules/request/claim_requests.sql", "where w.nth_of_id = 1", "where true")],
    tests: ["test/db/races/group-names.test.ts"],
  },
  {
    name: "tag check of a code",
    behind: "the lookup of its hash, as NOT_FOUND",
    edits: [edit("src/crypto/coupon-code.ts", "return difference === 0;", "return true;")],
    tests: ["test/crypto/coupon-code.test.ts", "test/http/precedence.test.ts"],
  },
  {
    name: "answers for a client that has ended its side",
    edits: [edit("src/http/listener.ts", "  Object.assign(server, { httpAllowHalfOpen: true });\n", "")],
    tests: ["test/http/listener.test.ts", "test/http/drain.test.ts"],
  },
  {
    name: "long calls outside the quick lane",
    edits: [edit("src/gate/gate.ts", 'sendGroup("long"', 'sendGroup("quick"')],
    tests: ["test/gate/gate.test.ts"],
  },
  {
    name: "a tenant's share of a lane",
    edits: [edit("src/gate/lane.ts", "countOf(tenantId) < widthOfTenant", "true")],
    tests: ["test/gate/gate.test.ts", "test/gate/lane.test.ts"],
  },
  {
    name: "a tenant's share of the queues",
    edits: [edit("src/gate/queue.ts", "ofTenant.size < mostWaiting / 2", "true")],
    tests: ["test/gate/lane.test.ts", "test/gate/groups.test.ts"],
  },
  {
    name: "a tenant's share of the open requests",
    edits: [edit("src/http/open-requests.ts", "Math.ceil(limit / 2)", "limit")],
    tests: ["test/http/listener.test.ts"],
  },
];

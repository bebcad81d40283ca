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
        "db/code/rules/feed/read_feed.sql",
        "where p.tenant_id = p_tenant_id\n      and p.party_id = p_party_id\n",
        "where p.tenant_id = p_tenant_id\n",
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
    name: "what a function of the owner calls has its search_path, not the caller's",
    edits: [edit("db/code/jobs/lapse_locks.sql", "set search_path = pg_catalog, pg_temp ", "")],
    tests: ["test/db/catalog.test.ts"],
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
  {
    name: "a program with another master key",
    edits: [
      edit(
        "db/code/rules/master_key/find_key_problems.sql",
        "m.fingerprint is distinct from decode(p_keys ->> m.version, 'hex')",
        "false",
      ),
    ],
    tests: ["test/db/admin/keys.test.ts", "test/operations/master-keys.test.ts"],
  },
  {
    name: "a master key in use that a program lacks",
    edits: [
      edit("db/code/rules/master_key/find_key_problems.sql", "else rules.is_key_in_use(m.version)", "else false"),
    ],
    tests: ["test/db/admin/keys.test.ts", "test/operations/master-keys.test.ts"],
  },
  {
    name: "the second of two different keys that are registered at once",
    edits: [
      edit(
        "db/code/rules/master_key/register_keys.sql",
        "return query select f.version, f.problem from rules.find_key_problems(p_keys) f;",
        "null;",
      ),
    ],
    tests: ["test/db/admin/keys.test.ts"],
  },
  {
    name: "master keys at the start of the HTTP side",
    edits: [edit("src/serve.ts", "if (error instanceof ConfigError) {", "if (!error) {")],
    tests: ["test/operations/master-keys.test.ts"],
  },
  {
    name: "master keys at the start of the worker",
    behind: "jobs.list_due_batches, which lists no batch of another key",
    edits: [edit("src/work.ts", "if (error instanceof ConfigError) {", "if (!error) {")],
    tests: ["test/operations/master-keys.test.ts"],
  },
  {
    name: "master keys of a running program",
    edits: [edit("src/serve.ts", "if (isCurrent) await checkDatabase(deadline);", "")],
    tests: ["test/operations/master-keys.test.ts"],
  },
  {
    name: "no new master key beside a database",
    edits: [edit("src/embedded/load-keys.ts", " && !hasDatabase(dataDir)", "")],
    tests: ["test/embedded/load-keys.test.ts", "test/operations/master-keys.test.ts"],
  },
  {
    name: "a DATA_DIR that others cannot list",
    edits: [
      edit("src/embedded/data-directory.ts", "{ recursive: true, mode: 0o700 }", "{ recursive: true }"),
      edit("src/embedded/data-directory.ts", "  if (isNew && isRoot) chmodSync(dataDir, 0o711);\n", ""),
    ],
    tests: ["test/embedded/load-keys.test.ts"],
  },
  {
    name: "a batch waits for a worker with its key",
    behind: "jobs.claim_batch, which gives no batch to a worker with another key",
    edits: [edit("db/code/jobs/list_due_batches.sql", " and rules.has_key(p_keys, b.key_version)", "")],
    tests: ["test/worker/tasks/mint.test.ts"],
  },
  {
    name: "a tenant leaves a place to mint to another tenant",
    edits: [edit("db/code/jobs/list_due_batches.sql", "order by d.turn, d.missing,", "order by d.missing,")],
    tests: ["test/worker/tasks/mint.test.ts"],
  },
  {
    name: "batches that are minted count",
    edits: [edit("db/code/jobs/list_due_batches.sql", "filter (where not p.is_due)", "filter (where false)")],
    tests: ["test/worker/tasks/mint.test.ts"],
  },
  {
    name: "a worker claims only batches whose key it has",
    edits: [edit("db/code/jobs/claim_batch.sql", "\n    and rules.has_key(p_keys, b.key_version)", "")],
    tests: ["test/worker/tasks/mint.test.ts"],
  },
  {
    name: "a key with codes or secrets stays registered",
    edits: [
      edit(
        "db/code/admin/forget_key.sql",
        "if exists (select from core.batch b where b.key_version = p_version)\n     or rules.is_key_in_use(p_version)",
        "if false",
      ),
    ],
    tests: ["test/db/admin/keys.test.ts"],
  },
  {
    name: "the key of the lookup hashes is derived for its own purpose, and stays the same",
    edits: [edit("src/crypto/keys.ts", 'lookup: derive("lookup")', 'lookup: derive("tag")')],
    tests: ["test/crypto/keys.test.ts"],
  },
  {
    name: "the key that seals secrets is derived for its own purpose, and stays the same",
    edits: [edit("src/crypto/keys.ts", 'seal: derive("seal")', 'seal: derive("tag")')],
    tests: ["test/crypto/keys.test.ts"],
  },
  {
    name: "the key that hashes bodies and secrets is derived for its own purpose, and stays the same",
    edits: [edit("src/crypto/keys.ts", 'request: derive("request")', 'request: derive("tag")')],
    tests: ["test/crypto/keys.test.ts"],
  },
  {
    name: "what a sealed secret of a credential is sealed for stays the same",
    edits: [edit("src/crypto/seal.ts", "`credential ${accessKey}`", "`credential:${accessKey}`")],
    tests: ["test/crypto/keys.test.ts"],
  },
  {
    name: "what a sealed secret of a webhook is sealed for stays the same",
    edits: [edit("src/crypto/seal.ts", "`webhook ${tenant} ${party}`", "`webhook:${tenant} ${party}`")],
    tests: ["test/crypto/keys.test.ts"],
  },
  {
    name: "a reversal names who reversed, not who redeemed",
    edits: [
      edit("db/code/api/reverse.sql", "v_batch.distributor_id, p_call.", "v_batch.distributor_id, v_redemption."),
    ],
    tests: ["test/db/api/variants.test.ts"],
  },
  ...["p_tenant_id::bigint << 32", "p_caller_id"].map((seed) => ({
    name: `the lock of a name has a tenant and a caller, not only ${seed}`,
    edits: [edit("db/code/rules/request/compute_name_lock.sql", "p_tenant_id::bigint << 32 | p_caller_id", seed)],
    tests: ["test/db/races/group-names.test.ts"],
  })),
  {
    name: "the lock of a nonce is that of a credential",
    edits: ["do nothing", "(tenant_id"].map((conflict) => {
      const lock = (seed: string) => `hashtextextended(c.nonce, ${seed}))\n  on conflict ${conflict}`;
      return edit("db/code/rules/request/spend_nonces.sql", lock("c.credential_id"), lock("0"));
    }),
    tests: ["test/db/races/group-names.test.ts"],
  },
];

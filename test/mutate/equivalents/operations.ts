// Mutants of the operations, of db/code/api and what they call, that no test can notice, each with the reason.

import type { Equivalent } from "./equivalent.ts";

export const inOperations: Equivalent[] = [
  {
    file: "db/code/api/allocate_batch.sql",
    before: "from core.batch b where b.tenant_id = p_call.tenant_id and b.batch_id = v_batch.batch_id;",
    after: "from core.batch b where true and b.batch_id = v_batch.batch_id;",
    reason: "A batch_id is unique across tenants.",
  },
  {
    file: "db/code/api/allocate_batch.sql",
    before: "where b.tenant_id = p_call.tenant_id and b.batch_id = v_batch.batch_id;",
    after: "where true and b.batch_id = v_batch.batch_id;",
    reason: "A batch_id is unique across tenants.",
  },
  {
    file: "db/code/rules/batch/hold_batch.sql",
    before: "where b.tenant_id = p_call.tenant_id and b.batch_id = p_batch_id",
    after: "where true and b.batch_id = p_batch_id",
    reason: "A batch_id is unique across tenants.",
  },
  {
    file: "db/code/rules/batch/render_batch.sql",
    before: "where b.tenant_id = p_tenant_id and b.batch_id = p_batch_id;",
    after: "where true and b.batch_id = p_batch_id;",
    reason: "A batch_id is unique across tenants.",
  },
  {
    file: "db/code/rules/coupon/expire_extended.sql",
    before: "join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id",
    after: "join core.batch b on true and b.batch_id = c.batch_id",
    reason: "A batch_id is unique across tenants.",
  },
  {
    file: "db/code/rules/coupon/find_batch_of_coupon.sql",
    before: "join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id",
    after: "join core.batch b on true and b.batch_id = c.batch_id",
    reason: "A batch_id is unique across tenants.",
  },
  {
    file: "db/code/rules/redemption/read_redemption_cases.sql",
    before: "left join core.batch b on b.tenant_id = k.tenant_id and b.batch_id = k.batch_id",
    after: "left join core.batch b on true and b.batch_id = k.batch_id",
    reason: "A batch_id is unique across tenants.",
  },
  {
    file: "db/code/rules/coupon/render_coupon.sql",
    before: "where m.tenant_id = p_last.tenant_id and m.merchant_id = p_last.merchant_id))",
    after: "where true and m.merchant_id = p_last.merchant_id))",
    reason: "A merchant_id is unique across tenants.",
  },
  {
    file: "db/code/api/reverse.sql",
    before: "join core.merchant m on m.tenant_id = r.tenant_id and m.merchant_id = r.merchant_id",
    after: "join core.merchant m on true and m.merchant_id = r.merchant_id",
    reason: "A merchant_id is unique across tenants.",
  },
  {
    file: "db/code/rules/redemption/is_in_scope.sql",
    before: "where s.tenant_id = p_tenant_id",
    after: "where true",
    reason: "A merchant_id is unique across tenants.",
  },
  {
    file: "db/code/rules/request/check_place.sql",
    before: "where s.tenant_id = p_call.tenant_id",
    after: "where true",
    reason: "A merchant_id is unique across tenants.",
  },
  {
    file: "db/code/rules/request/is_delegate.sql",
    before: "where d.tenant_id = p_tenant_id",
    after: "where true",
    reason: "A merchant_id is unique across tenants.",
  },
  {
    file: "db/code/api/create_batch.sql",
    before: "union all\nselect k.* from core.batch k",
    after: "union select k.* from core.batch k",
    reason: "Both lines may find the same batch, and only one row is used.",
  },
  {
    file: "db/code/api/create_batch.sql",
    before: "limit 1;",
    after: ";",
    reason: "select into takes the first row. The limit tells the planner.",
  },
  {
    file: "db/code/api/query.sql",
    before: "limit 1;",
    after: ";",
    reason: "select into takes the first row. The limit tells the planner.",
  },
  {
    file: "db/code/api/create_batch.sql",
    before: "if v_template.valid_to <= clock_timestamp() then",
    after: "if v_template.valid_to < clock_timestamp() then",
    reason: "Differs only if the clock is read in the microsecond in which the validity ends.",
  },
  {
    file: "db/code/rules/coupon/expire_extended.sql",
    before: "where x.valid_to <= v_due",
    after: "where x.valid_to < v_due",
    reason: "Differs only if the clock is read in the microsecond in which the validity ends.",
  },
  {
    file: "db/code/rules/coupon/expire_extended.sql",
    before: "and c.valid_to <= v_due  -- checked again once locked: it may have been extended",
    after: "and c.valid_to < v_due  -- checked again once locked: it may have been extended",
    reason: "Differs only if the clock is read in the microsecond in which the validity ends.",
  },
  {
    file: "db/code/rules/coupon/free_coupon.sql",
    before: "v_is_expired  boolean := p_coupon.valid_to <= clock_timestamp();",
    after: "v_is_expired  boolean := p_coupon.valid_to < clock_timestamp();",
    reason: "Differs only if the clock is read in the microsecond in which the validity ends.",
  },
  {
    file: "db/code/rules/redemption/lapse_expired_locks.sql",
    before: "where c.ordinal = any (p_held) and r.lock_expires_at <= clock_timestamp()",
    after: "where c.ordinal = any (p_held) and r.lock_expires_at < clock_timestamp()",
    reason: "Differs only if the clock is read in the microsecond in which the lock ends.",
  },
  {
    file: "db/code/rules/redemption/lapse_expired_lock.sql",
    before: "and r.lock_expires_at <= v_now",
    after: "and r.lock_expires_at < v_now",
    reason: "Differs only if the clock is read in the microsecond in which the lock ends.",
  },
  {
    file: "db/code/rules/request/claim_request.sql",
    before: "and (v_key = v_id or pg_try_advisory_xact_lock(v_key));",
    after: "and (false or pg_try_advisory_xact_lock(v_key));",
    reason: "A transaction that holds an advisory lock gets it again.",
  },
  {
    file: "db/code/rules/request/identify_callers.sql",
    before: "order by r.ordinal);",
    after: ");",
    reason: "gate.perform allows only nested loops, which keep the order.",
  },
  {
    file: "db/code/rules/request/run_others.sql",
    before: "v_answer := rules.succeed('{\"ok\":true}');",
    after: "v_answer := rules.succeed('{\"xk\":true}');",
    reason: "Nobody reads this body: only whether the nonce was new.",
  },
  {
    file: "db/code/rules/request/spend_nonces.sql",
    before: "where n.seen_at < excluded.seen_at - interval '11 minutes';",
    after: "where n.seen_at <= excluded.seen_at - interval '11 minutes';",
    reason: "Differs only for a nonce that is 11 minutes old to the microsecond.",
  },
  {
    file: "db/code/rules/request/spend_nonces.sql",
    before: "select c.tenant_id, c.credential_id, c.nonce, clock_timestamp()",
    after: "select c.tenant_id, c.credential_id, c.nonce, now()",
    reason: "Nonces are spent at the beginning of a transaction, before it waits for anything.",
  },
  {
    file: "db/code/rules/redemption/lapse_lock.sql",
    before: "where r.tenant_id = p_tenant_id and r.redemption_id = p_redemption_id and r.status = 'LOCKED';",
    after: "where r.tenant_id = p_tenant_id and r.redemption_id = p_redemption_id and true;",
    reason: "The callers hold the coupon's row and have seen that the redemption is LOCKED.",
  },
  {
    file: "db/code/rules/redemption/lapse_expired_locks.sql",
    before: "on r.coupon_id = k.coupon_id and r.tenant_id = k.tenant_id and r.status = 'LOCKED'",
    after: "on r.coupon_id = k.coupon_id and true and r.status = 'LOCKED'",
    reason: "The redemption is held and looked at again by the tenant of the call.",
  },
];

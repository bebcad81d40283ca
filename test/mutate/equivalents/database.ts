// Mutants of db/ that no test can notice, each with the reason.

import type { Equivalent } from "./equivalent.ts";

export const inDatabase: Equivalent[] = [
  {
    file: "db/code/admin/void_coupon.sql",
    before: "v_coupon.status, v_coupon.valid_to, v_lock.lock_expires_at, true, 'A', v_now);",
    after: "v_coupon.status, v_coupon.valid_to, v_lock.lock_expires_at, true, 'x', v_now);",
    reason: "The variant matters only for a coupon that is not released, and the argument before it says released.",
  },
  {
    file: "db/code/rules/redemption/perform_redemptions.sql",
    before: "if v_hold.is_locked then",
    after: "if true then",
    reason: "Only a LOCKED coupon has a live lock. The condition saves a read for all other coupons.",
  },
  {
    file: "db/migrations/009-consistency.sql",
    before: "or (v_is.status = 'LOCKED' and v_is.entered is null))",
    after: "or (v_is.coupon_status = 'LOCKED' and v_is.entered is null))",
    reason: "The condition around it demands that both are equal.",
  },
  {
    file: "db/code/rules/answer/parse_id.sql",
    before: "for i in 1 .. 26 loop",
    after: "for i in 1 .. 27 loop",
    reason: "Nothing reads the bits after the 130th.",
  },
  {
    file: "db/code/gate/perform.sql",
    before: "if cardinality(v_claims.claimed) > 0 then",
    after: "if cardinality(v_claims.claimed) >= 0 then",
    reason: "Without a claimed call, the function does nothing. The condition saves the call.",
  },
  {
    file: "db/code/rules/provisioning/find_template_problems.sql",
    before: "union all\nselect 'currency', 'is not an ISO 4217 currency'",
    after: "union select 'currency', 'is not an ISO 4217 currency'",
    reason: "The lines before it are different, so there is nothing to unite.",
  },
  {
    file: "db/code/jobs/prune_feed.sql",
    before: "where h.sequenced_at < now() - make_interval(days => p_days)",
    after: "where h.sequenced_at < clock_timestamp() - make_interval(days => p_days)",
    reason: "A feed that is on the list too early loses nothing, because each event is asked by now().",
  },
  {
    file: "db/code/rules/coupon/expire_range.sql",
    before: "where c.tenant_id = p_batch.tenant_id",
    after: "where true",
    reason: "A batch_id is unique across tenants.",
  },
  {
    file: "db/code/admin/void_batch.sql",
    before: "where c.tenant_id = v_batch.tenant_id",
    after: "where true",
    reason: "A batch_id is unique across tenants.",
  },
  {
    file: "db/code/jobs/mint_chunk.sql",
    before: "where b.tenant_id = p_tenant_id and b.batch_id = p_batch_id;",
    after: "where true and b.batch_id = p_batch_id;",
    reason: "A batch_id is unique across tenants.",
  },
  {
    file: "db/code/api/query.sql",
    before: "or (r.status = 'LOCKED' and r.lock_expires_at > v_now))",
    after: "or (r.status = 'LOCKED' and r.lock_expires_at >= v_now))",
    reason: "Differs only if the clock is read in the microsecond in which the lock ends.",
  },
  {
    file: "db/code/report/webhook_health.sql",
    before: "and x.attempted_at > clock_timestamp() - interval '24 hours') a",
    after: "and x.attempted_at >= clock_timestamp() - interval '24 hours') a",
    reason: "Differs only if the clock is read in the microsecond in which an attempt is 24 hours old.",
  },
  {
    file: "db/code/rules/webhook/find_webhooks.sql",
    before: "limit 2);",
    after: "limit 3);",
    reason: "The callers ask only whether there is exactly one.",
  },
  {
    file: "db/code/rules/redemption/find_lock.sql",
    before: "limit 1;",
    after: ";",
    reason: "select into takes the first row. The limit tells the planner.",
  },
  {
    file: "db/code/rules/statement/read_summary_page.sql",
    before: "rules.format_amount(l.redemption_minor + l.reversal_minor, u.decimals, 'major')::text,",
    after: "rules.format_amount(l.redemption_minor + l.reversal_minor, u.decimals, 'xajor')::text,",
    reason: "Every unit but minor is written in major units.",
  },
  {
    file: "db/code/rules/invariant/batch_has_the_coupons_it_counts.sql",
    before: "or (b.status <> 'PENDING' and b.minted_count <> b.total_count);",
    after: "or false;",
    reason: "A check constraint of the table says the same. The invariant states it for its reader.",
  },
  {
    file: "db/code/rules/invariant/redemption_has_coupon_and_merchant.sql",
    before: "where c.coupon_id is null or m.merchant_id is null;",
    after: "where c.tenant_id is null or m.merchant_id is null;",
    reason: "Both columns are null only if there is no coupon.",
  },
  {
    file: "db/code/rules/feed/claim_events.sql",
    before: "if v_new_high - v_old_high > cardinality(p_taken) - cardinality(v_late) then",
    after: "if v_new_high + v_old_high > cardinality(p_taken) - cardinality(v_late) then",
    reason: "If no number is missing, the insert finds none. The condition saves the search.",
  },
  {
    file: "db/code/rules/feed/claim_events.sql",
    before: "if v_new_high - v_old_high > cardinality(p_taken) - cardinality(v_late) then",
    after: "if v_new_high - v_old_high >= cardinality(p_taken) - cardinality(v_late) then",
    reason: "If no number is missing, the insert finds none. The condition saves the search.",
  },
  {
    file: "db/code/rules/request/find_retries.sql",
    before: "and (s.request_id is not null or c.idempotency_key is not null))",
    after: "and (s.tenant_id is not null or c.idempotency_key is not null))",
    reason: "Both columns are null only if there is no record.",
  },
  {
    file: "db/code/rules/worker/compute_worker_lock.sql",
    before: "return hashtextextended('worker ' || p_worker, 0);",
    after: "return hashtextextended('worker ' || p_worker, 1);",
    reason: "Any number that follows from the worker's will do: every caller gets it from here.",
  },
];

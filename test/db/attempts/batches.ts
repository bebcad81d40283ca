// Attempts on batches and templates.
import {
  insertBatch,
  insertCopy,
  insertVoiding,
  together,
  update,
  updateBatch,
  updateCoupon,
  type Attempts,
} from "./statements.ts";

const insertOther = (changes: Record<string, string>) =>
  insertBatch({ batch_id: "999", external_id: "'bat_1'", request_id: "'new'", idempotency_key: "null", ...changes });
const updateUnused = (change: string) => update("template", change, "external_id = 'tpl_unused'");
const updateUsed = (change: string) => update("template", change, "external_id = 'tpl_fixed'");

const keyAttempts: Attempts = {
  key_version_is_one_character: {
    "a version of two characters": insertCopy("master_key", "true", { version: "'12'" }),
    "a version that no code can begin with": insertCopy("master_key", "true", { version: "'O'" }),
  },
  fingerprint_has_16_bytes: {
    "a whole key as the fingerprint": insertCopy("master_key", "true", {
      version: "'9'",
      fingerprint: "'\\x' || repeat('00', 32)",
    }),
  },
};

const batchAttempts: Attempts = {
  batch_is_fixed_at_submission: { "another distributor": updateBatch("allocated", "distributor_id = 0") },
  batch_transition_is_legal: {
    "a release undone": updateBatch("allocated", "status = 'COMPLETED', allocated_at = null"),
    "a release before completion": updateBatch(
      "pending",
      "status = 'ALLOCATED', minted_count = 3, completed_at = now(), allocated_at = now()",
    ),
    "a smaller number of minted coupons": updateBatch("allocated", "minted_count = 0"),
  },
  batch_is_pending_until_all_are_minted: {
    "too early": updateBatch("pending", "status = 'COMPLETED', completed_at = now()"),
  },
  minted_count_is_within_total: { "more coupons than submitted": updateBatch("pending", "minted_count = 4") },
  completed_at_agrees_with_status: {
    "without a time": updateBatch("pending", "status = 'COMPLETED', minted_count = 3"),
  },
  allocated_at_agrees_with_status: { "released without a time": updateBatch("completed", "status = 'ALLOCATED'") },
  salt_is_kept_until_codes_are_destroyed: { "the salt lost": updateBatch("allocated", "salt = null") },
  time_is_finite: { "a batch that never expires": updateBatch("allocated", "valid_to = 'infinity'") },
  batch_validity_is_forward: { "an end before the beginning": insertOther({ valid_to: "(o.x).valid_from" }) },
  batch_status_is_known: { "an unknown status": updateBatch("completed", "status = 'LOST'") },
  batch_external_id_is_well_formed: { "an ID with another prefix": insertOther({ external_id: "'tpl_1'" }) },
  total_count_is_1_to_10_million: {
    "an empty batch": insertOther({ total_count: "0" }),
    "a batch beyond the limit": insertOther({ total_count: "10000001" }),
  },
  batch_create_runs_once: { "the same request_id": insertOther({ request_id: "(o.x).request_id" }) },
  batch_create_runs_once_a_key: { "a second time": insertOther({ idempotency_key: "(o.x).idempotency_key" }) },
  expired_through_is_within_total: { "more than the batch has": updateBatch("pending", "expired_through = 4") },
  only_released_coupons_expire: { "before their release": updateBatch("completed", "expired_through = 1") },
  expiry_passes_no_issued_coupon: {
    "coupons passed before the end of their batch": together(
      insertVoiding("issued", "null"),
      updateCoupon("issued", "status = 'VOIDED'"),
      updateBatch("allocated", "expired_through = 1"),
    ),
    "coupons passed that are still ISSUED": update(
      "batch",
      "expired_through = 1",
      "batch_id = (select c.batch_id from core.coupon c where c.coupon_id = :past)",
    ),
  },
  mint_lease_names_its_worker: {
    "no worker": updateBatch(
      "pending",
      "mint_holder = gen_random_uuid(), mint_worker = null, mint_lease_until = now()",
    ),
    "a worker without a lease": updateBatch("pending", "mint_holder = null, mint_worker = 1"),
  },
  mint_lease_has_an_end: {
    "a lease for ever": updateBatch("pending", "mint_holder = gen_random_uuid(), mint_worker = 1"),
    "the end of a lease that nobody has": updateBatch("pending", "mint_lease_until = now()"),
  },
  batch_external_id_key: { "the ID of another batch": insertOther({ external_id: "(o.x).external_id" }) },
  batch_id_is_unique: { "that of another tenant": insertOther({ tenant_id: "999", batch_id: "(o.x).batch_id" }) },
};

const templateAttempts: Attempts = {
  template_with_batches_keeps_its_terms: { "another discount": updateUsed("discount_minor = 1") },
  discount_is_fixed_or_percent: {
    "both types at once": updateUnused("discount_percent = 10"),
    "an unknown type": updateUnused("discount_type = 'gift'"),
  },
  fixed_discount_is_positive: { "a discount of 0": updateUnused("discount_minor = 0") },
  percent_is_within_0_and_100: {
    "over 100 percent": updateUnused("discount_type = 'percent', discount_minor = null, discount_percent = 100.01"),
  },
  max_discount_is_positive: {
    "a maximum of 0": updateUnused(
      "discount_type = 'percent', discount_minor = null, discount_percent = 1, max_discount_minor = 0",
    ),
  },
  amount_is_not_negative: { "a negative minimum": updateUnused("min_order_minor = -1") },
  skus_are_not_empty: { "an empty list of SKUs": updateUnused("skus = '{}'") },
  template_validity_is_forward: { "an end before the beginning": updateUnused("valid_to = valid_from") },
  lock_ttl_is_1_second_to_7_days: {
    "a lock of more than 7 days": updateUnused("lock_ttl_seconds = 604801"),
    "a lock of 0 seconds": updateUnused("lock_ttl_seconds = 0"),
  },
  after_reversal_is_known: { "an unknown rule after a reversal": updateUnused("after_reversal = 'maybe'") },
};

export const attemptsOnBatches = [keyAttempts, batchAttempts, templateAttempts];

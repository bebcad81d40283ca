// Attempts on batches and templates.
import { insertCopy, insertVoiding, together, update, updateBatch, updateCoupon, type Attempts } from "./statements.ts";

const insertOther = (changes: Record<string, string>) =>
  insertCopy("batch", "batch_id = :pending", {
    batch_id: "999",
    external_id: "'bat_1'",
    request_id: "'new'",
    idempotency_key: "null",
    ...changes,
  });
const updateUnused = (change: string) => update("template", change, "external_id = 'tpl_unused'");
const updateUsed = (change: string) => update("template", change, "external_id = 'tpl_fixed'");

const recalledNow = "suspended_at = now(), recalled_at = now(), recall_caller_id = 0";

const keyAttempts: Attempts = {
  key_version_is_one_character: [
    insertCopy("master_key", "true", { version: "'12'" }),
    insertCopy("master_key", "true", { version: "'O'" }),
  ],
  fingerprint_has_16_bytes: [
    insertCopy("master_key", "true", { version: "'9'", fingerprint: "'\\x' || repeat('00', 32)" }),
  ],
};

const batchAttempts: Attempts = {
  batch_is_fixed_at_submission: [
    updateBatch("allocated", "distributor_id = 0"),
    updateBatch("allocated", "body_hash = '\\x01'"),
  ],
  batch_times_are_fixed: [
    ...["completed_at", "allocated_at"].map((column) =>
      updateBatch("allocated", `${column} = ${column} - interval '1 second'`),
    ),
    ...["suspended_at = null", "recalled_at = now()", "recall_caller_id = 1", "recall_reason = 'other'"].map(
      (changed) => updateBatch("recalled", changed),
    ),
    together(
      updateBatch("recalled", "recall_finished_at = now()"),
      updateBatch("recalled", "recall_finished_at = null"),
    ),
  ],
  batch_transition_is_legal: [
    updateBatch("allocated", "status = 'COMPLETED', allocated_at = null"),
    updateBatch("pending", "status = 'ALLOCATED', minted_count = 3, completed_at = now(), allocated_at = now()"),
    updateBatch("allocated", "minted_count = 0"),
    updateBatch("pending", `${recalledNow}, minted_count = 1`),
    updateBatch("completed", `${recalledNow}, status = 'ALLOCATED', allocated_at = now()`),
    updateBatch("recalled", "recalled_through = 1"),
    updateBatch("recalled", "recall_voided_count = 0"),
  ],
  recalled_batch_is_suspended: [updateBatch("allocated", "recalled_at = now(), recall_caller_id = 0")],
  recall_names_its_caller: [
    updateBatch("allocated", "suspended_at = now(), recalled_at = now()"),
    updateBatch("allocated", "recall_caller_id = 0"),
  ],
  only_a_recalled_batch_has_a_reason: [updateBatch("allocated", "recall_reason = 'leaked'")],
  recall_reason_is_at_most_1000_characters: [
    updateBatch("allocated", `${recalledNow}, recall_reason = repeat('x', 1001)`),
  ],
  recall_reason_is_printable: [updateBatch("allocated", `${recalledNow}, recall_reason = e'\\n'`)],
  recall_passes_minted_coupons: [
    updateBatch("completed", "recalled_through = 1"),
    updateBatch("recalled", "recalled_through = 3"),
  ],
  recall_voids_what_it_has_passed: [updateBatch("recalled", "recall_voided_count = 3")],
  recall_finishes_with_the_last_coupon: [
    updateBatch("allocated", "recall_finished_at = now()"),
    updateBatch("allocated", `${recalledNow}, recall_finished_at = now()`),
  ],
  recall_passes_no_usable_coupon: [
    updateBatch("allocated", `${recalledNow}, recalled_through = 1`),
    together(
      insertVoiding("issued", "null"),
      updateCoupon("issued", "status = 'VOIDED'"),
      updateBatch("allocated", `${recalledNow}, recalled_through = 2`),
    ),
  ],
  batch_is_pending_until_all_are_minted: [updateBatch("pending", "status = 'COMPLETED', completed_at = now()")],
  minted_count_is_within_total: [updateBatch("pending", "minted_count = 4")],
  completed_at_agrees_with_status: [updateBatch("pending", "status = 'COMPLETED', minted_count = 3")],
  allocated_at_agrees_with_status: [updateBatch("completed", "status = 'ALLOCATED'")],
  salt_is_kept_until_codes_are_destroyed: [updateBatch("allocated", "salt = null")],
  batch_validity_is_forward: [insertOther({ valid_to: "(o.x).valid_from" })],
  batch_status_is_known: [updateBatch("completed", "status = 'LOST'")],
  batch_external_id_is_well_formed: [insertOther({ external_id: "'tpl_1'" })],
  total_count_is_1_to_10_million: [insertOther({ total_count: "0" }), insertOther({ total_count: "10000001" })],
  batch_create_runs_once: [insertOther({ request_id: "(o.x).request_id" })],
  batch_create_runs_once_a_key: [insertOther({ idempotency_key: "(o.x).idempotency_key" })],
  expired_through_is_within_total: [updateBatch("pending", "expired_through = 4")],
  only_released_coupons_expire: [updateBatch("completed", "expired_through = 1")],
  expiry_passes_no_issued_coupon: [
    together(
      insertVoiding("issued", "null"),
      updateCoupon("issued", "status = 'VOIDED'"),
      updateBatch("allocated", "expired_through = 1"),
    ),
    update(
      "batch",
      "expired_through = 1",
      "batch_id = (select c.batch_id from core.coupon c where c.coupon_id = :past)",
    ),
  ],
  mint_lease_names_its_worker: [
    updateBatch("pending", "mint_holder = gen_random_uuid(), mint_worker = null, mint_lease_until = now()"),
    updateBatch("pending", "mint_holder = null, mint_worker = 1"),
  ],
  mint_lease_has_an_end: [
    updateBatch("pending", "mint_holder = gen_random_uuid(), mint_worker = 1"),
    updateBatch("pending", "mint_lease_until = now()"),
  ],
  batch_external_id_key: [insertOther({ external_id: "(o.x).external_id" })],
  batch_id_is_unique: [insertOther({ tenant_id: "999", batch_id: "(o.x).batch_id" })],
};

const templateAttempts: Attempts = {
  template_with_batches_keeps_its_terms: [updateUsed("discount_minor = 1")],
  discount_is_fixed_or_percent: [updateUnused("discount_percent = 10"), updateUnused("discount_type = 'gift'")],
  fixed_discount_is_positive: [updateUnused("discount_minor = 0")],
  percent_is_within_0_and_100: [
    updateUnused("discount_type = 'percent', discount_minor = null, discount_percent = 100.01"),
  ],
  max_discount_is_positive: [
    updateUnused("discount_type = 'percent', discount_minor = null, discount_percent = 1, max_discount_minor = 0"),
  ],
  amount_is_not_negative: [updateUnused("min_order_minor = -1")],
  skus_are_printable: [updateUnused("skus = array['x', e'\\u2028']")],
  skus_are_not_empty: [updateUnused("skus = '{}'")],
  template_validity_is_forward: [updateUnused("valid_to = valid_from")],
  lock_ttl_is_1_second_to_7_days: [updateUnused("lock_ttl_seconds = 604801"), updateUnused("lock_ttl_seconds = 0")],
  after_reversal_is_known: [updateUnused("after_reversal = 'maybe'")],
};

export const attemptsOnBatches = [keyAttempts, batchAttempts, templateAttempts];

// Attempts on coupons, their voidings, redemptions and reversals, and on the ledger.
import {
  insertCopy,
  insertCoupon,
  insertEntry,
  insertLive,
  insertRedemption,
  insertReversal,
  insertVoiding,
  redeemLock,
  reverseRedemption,
  together,
  update,
  updateBatch,
  updateCoupon,
  updateRedemption,
  type Attempts,
} from "./statements.ts";

const couponAttempts: Attempts = {
  coupon_has_one_live_redemption: [
    insertLive("locked", "LOCKED"),
    insertLive("locked", "REDEEMED"),
    insertLive("redeemed", "REDEEMED"),
  ],
  coupon_agrees_with_its_redemptions: [
    insertLive("cancelled", "LOCKED"),
    insertLive("cancelled", "REDEEMED"),
    updateCoupon("issued", "status = 'LOCKED'"),
    updateCoupon("issued", "status = 'REDEEMED'"),
    updateCoupon("locked", "status = 'REDEEMED'"),
    updateCoupon("issued", "status = 'VOIDED'"),
    updateCoupon("locked", "status = 'ISSUED'"),
    updateCoupon("locked", "status = 'EXPIRED'"),
    updateRedemption("locked", "status = 'CANCELLED', ended_at = now()"),
  ],
  recalled_coupon_is_not_issued_again: [
    together(updateBatch("recalled", "recall_finished_at = now()"), updateCoupon("awaited", "status = 'ISSUED'")),
  ],
  coupon_transition_is_legal: [
    updateCoupon("voided", "status = 'ISSUED'"),
    updateCoupon("redeemed", "status = 'ISSUED'"),
    updateCoupon("redeemed", "status = 'VOIDED'"),
    updateCoupon("reversed", "status = 'ISSUED'"),
    updateCoupon("reversed", "status = 'EXPIRED'"),
    updateCoupon("redeemed", "status = 'LOCKED'"),
    together(updateCoupon("past", "status = 'EXPIRED'"), updateCoupon("past", "status = 'ISSUED'")),
  ],
  coupon_identity_is_fixed: [updateCoupon("issued", "lookup_hash = gen_random_uuid()")],
  coupon_status_is_known: [insertCoupon({ status: "'USED'" })],
  coupon_validity_is_forward: [updateCoupon("issued", "valid_to = valid_from")],
  number_is_within_batch: [
    insertCoupon({ number: "0" }),
    insertCoupon({ number: "4" }),
    insertCoupon({ number: "2", batch_id: ":completed" }),
    insertCoupon({ batch_id: "2147483647" }),
  ],
  coupon_is_minted_issued: [insertCoupon({ status: "'REDEEMED'" })],
  code_is_unique_in_tenant: [insertCoupon({ lookup_hash: "(o.x).lookup_hash" })],
  number_is_unique_in_batch: [insertCoupon({ batch_id: "(o.x).batch_id", number: "(o.x).number" })],
  extended_coupon_expires: [
    together(updateCoupon("extended", "valid_to = now() - interval '1 second'"), "delete from core.coupon_extension"),
    together(updateCoupon("extended", "status = 'EXPIRED'"), "delete from core.coupon_extension"),
    update("coupon_extension", "valid_to = valid_to + interval '1 day'"),
    insertCopy("coupon_extension", "true", { coupon_id: ":issued" }),
  ],
  voiding_is_at_a_merchant: [
    together(insertVoiding("issued", "2147483647"), updateCoupon("issued", "status = 'VOIDED'")),
  ],
  voiding_agrees_with_its_coupon: [
    insertVoiding("issued", "null"),
    together(insertVoiding("issued", "null", "null", ":completed"), updateCoupon("issued", "status = 'VOIDED'")),
  ],
  voiding_reason_is_printable: [insertVoiding("issued", "null", "e'line\\nbreak'")],
  voiding_reason_is_at_most_1000_characters: [insertVoiding("issued", "null", "repeat('x', 1001)")],
};

const redemptionAttempts: Attempts = {
  redemption_terms_are_fixed: [
    updateRedemption("redeemed", "discount_minor = 1"),
    updateRedemption("cancelled", "lock_expires_at = lock_expires_at + interval '1 second'"),
  ],
  redemption_transition_is_legal: [
    updateRedemption("redeemed", "status = 'CANCELLED', ended_at = now()"),
    updateRedemption("cancelled", "status = 'LOCKED'"),
    updateRedemption("reversed", "status = 'REDEEMED'"),
  ],
  redemption_is_of_a_coupon_at_a_merchant: [
    insertRedemption("cancelled", { coupon_id: "gen_random_uuid()" }),
    insertRedemption("cancelled", { merchant_id: "2147483647", ended_at: "now()" }),
  ],
  status_agrees_with_times: [
    insertRedemption("cancelled", { status: "'DONE'", ended_at: "null" }),
    insertRedemption("redeemed", { status: "'CANCELLED'", ended_at: "now()" }),
    updateRedemption("locked", "lock_expires_at = null"),
    updateRedemption("locked", "lock_expires_at = started_at + interval '169 hours'"),
    updateRedemption("locked", "status = 'REDEEMED', redeemed_at = lock_expires_at"),
    insertRedemption("locked", {
      status: "'REDEEMED'",
      redeemed_at: "now()",
      lock_expires_at: "now() - interval '1 second'",
    }),
    updateRedemption("locked", "status = 'REDEEMED'"),
    updateRedemption("locked", "ended_at = now()"),
  ],
  amount_is_not_negative: [insertRedemption("cancelled", { discount_minor: "-1" })],
  discount_is_within_order: [insertRedemption("cancelled", { order_minor: "499" })],
  time_is_finite: [
    updateRedemption("locked", "lock_expires_at = 'infinity'"),
    updateRedemption("locked", "status = 'REDEEMED', redeemed_at = '-infinity'"),
  ],
  store_or_terminal_is_at_most_64_characters: [
    insertRedemption("cancelled", { store: "repeat('x', 65)" }),
    insertRedemption("cancelled", { terminal: "repeat('x', 65)" }),
  ],
  store_or_terminal_is_printable: [
    insertRedemption("cancelled", { store: "e'\\u202e'" }),
    insertRedemption("cancelled", { terminal: "e'\\u200b'" }),
  ],
  order_id_is_printable: [insertRedemption("cancelled", { order_id: "e'\\r'" })],
  reversal_reason_is_printable: [insertReversal("redeemed", undefined, "e'line\\nbreak'")],
  order_id_is_at_most_128_characters: [insertRedemption("cancelled", { order_id: "repeat('x', 129)" })],
  reversal_reason_is_at_most_500_characters: [insertReversal("redeemed", undefined, "repeat('x', 501)")],
  redemption_is_reversed_once: [insertReversal("reversed")],
};

const ledgerAttempts: Attempts = {
  redemption_agrees_with_the_ledger: [
    insertRedemption("cancelled", { status: "'REVERSED'", redeemed_at: "now()", ended_at: "now()" }),
    `with new as (${insertLive("cancelled", "REDEEMED")})
      ${updateCoupon("cancelled", "status = 'REDEEMED'")}`,
    reverseRedemption("redeemed", {}, "now() - interval '1 day'"),
    together(
      updateRedemption("locked", "status = 'REDEEMED', redeemed_at = now()"),
      updateCoupon("locked", "status = 'REDEEMED'"),
    ),
    updateRedemption("redeemed", "status = 'REVERSED', ended_at = now()"),
    insertReversal("redeemed"),
    insertReversal("cancelled"),
  ],
  ledger_agrees_with_the_redemption: [
    insertEntry("locked"),
    redeemLock("locked", { amount: "499" }),
    redeemLock("locked", { recordedAt: "now() + interval '36 years'" }),
    redeemLock("locked", { currency: "'JPY'" }),
    reverseRedemption("redeemed", { currency: "'JPY'" }),
    redeemLock("locked", { amount: "-500" }),
    reverseRedemption("redeemed", { amount: "500" }),
    redeemLock("locked", { coupon: ":issued::uuid" }),
    reverseRedemption("redeemed", { coupon: ":issued::uuid" }),
    redeemLock("locked", { distributor: "2147483647" }),
    reverseRedemption("redeemed", { distributor: "2147483647" }),
    redeemLock("locked", { occurredAt: "now() - interval '1 second'" }),
    reverseRedemption("redeemed", { occurredAt: "redeemed_at" }),
  ],
  event_is_in_one_table: [
    redeemLock("locked", { seq: "(select min(event_seq) from core.event)" }),
    reverseRedemption(
      "redeemed",
      { amount: "-500" },
      "now()",
      "(select min(event_id::text)::uuid from core.event where event_type = 'coupon.voided')",
    ),
  ],
  ledger_entry_event_seq_key: [redeemLock("locked", { seq: "(select min(event_seq) from core.ledger_entry)" })],
  entry_type_is_known: [insertEntry("locked", {}, "CORRECTION")],
  ledger_entry_pkey: [insertEntry("redeemed")],
};

export const attemptsOnCoupons = [couponAttempts, redemptionAttempts, ledgerAttempts];

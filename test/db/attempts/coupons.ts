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
  updateCoupon,
  updateRedemption,
  type Attempts,
} from "./statements.ts";

const couponAttempts: Attempts = {
  coupon_has_one_live_redemption: {
    "a second live lock": insertLive("locked", "LOCKED"),
    "a redemption beside a lock": insertLive("locked", "REDEEMED"),
    "a second redemption": insertLive("redeemed", "REDEEMED"),
  },
  coupon_agrees_with_its_redemptions: {
    "a lock of a coupon that stays ISSUED": insertLive("cancelled", "LOCKED"),
    "a redemption of a coupon that stays ISSUED": insertLive("cancelled", "REDEEMED"),
    "LOCKED without a lock": updateCoupon("issued", "status = 'LOCKED'"),
    "REDEEMED without a redemption": updateCoupon("issued", "status = 'REDEEMED'"),
    "REDEEMED while only locked": updateCoupon("locked", "status = 'REDEEMED'"),
    "VOIDED without a voiding": updateCoupon("issued", "status = 'VOIDED'"),
    "ISSUED while locked": updateCoupon("locked", "status = 'ISSUED'"),
    "EXPIRED while locked": updateCoupon("locked", "status = 'EXPIRED'"),
    "a lock cancelled, its coupon still LOCKED": updateRedemption("locked", "status = 'CANCELLED', ended_at = now()"),
  },
  coupon_transition_is_legal: {
    "a voided coupon issued again": updateCoupon("voided", "status = 'ISSUED'"),
    "a redeemed coupon issued again without a reversal": updateCoupon("redeemed", "status = 'ISSUED'"),
    "a redeemed coupon voided": updateCoupon("redeemed", "status = 'VOIDED'"),
    "a coupon issued again after a reversal, against its template": updateCoupon("reversed", "status = 'ISSUED'"),
    "a coupon expired after a reversal, against its template": updateCoupon("reversed", "status = 'EXPIRED'"),
    "a redeemed coupon locked": updateCoupon("redeemed", "status = 'LOCKED'"),
    "past valid_to": together(updateCoupon("past", "status = 'EXPIRED'"), updateCoupon("past", "status = 'ISSUED'")),
  },
  coupon_identity_is_fixed: { "another code": updateCoupon("issued", "lookup_hash = gen_random_uuid()") },
  coupon_status_is_known: { "an unknown status": insertCoupon({ status: "'USED'" }) },
  coupon_validity_is_forward: { "an end before the beginning": updateCoupon("issued", "valid_to = valid_from") },
  time_is_finite: { "a coupon that never expires": updateCoupon("issued", "valid_to = 'infinity'") },
  number_is_within_batch: {
    "number 0": insertCoupon({ number: "0" }),
    "a number above the batch's total_count": insertCoupon({ number: "4" }),
    "a coupon for a completed batch": insertCoupon({ number: "2", batch_id: ":completed" }),
    "a coupon of an unknown batch": insertCoupon({ batch_id: "2147483647" }),
  },
  coupon_is_minted_issued: { "a coupon minted as redeemed": insertCoupon({ status: "'REDEEMED'" }) },
  code_is_unique_in_tenant: { "the code of another coupon": insertCoupon({ lookup_hash: "(o.x).lookup_hash" }) },
  number_is_unique_in_batch: {
    "that of another": insertCoupon({ batch_id: "(o.x).batch_id", number: "(o.x).number" }),
  },
  extended_coupon_expires: {
    "an extension deleted before its coupon is EXPIRED": together(
      updateCoupon("extended", "valid_to = now() - interval '1 second'"),
      "delete from core.coupon_extension",
    ),
    "before its end": together(updateCoupon("extended", "status = 'EXPIRED'"), "delete from core.coupon_extension"),
    "an extension with another end": update("coupon_extension", "valid_to = valid_to + interval '1 day'"),
    "an extension of a coupon that was not extended": insertCopy("coupon_extension", "true", { coupon_id: ":issued" }),
  },
  voiding_is_at_a_merchant: {
    "another merchant": together(insertVoiding("issued", "2147483647"), updateCoupon("issued", "status = 'VOIDED'")),
  },
  voiding_agrees_with_its_coupon: { "a voiding of a coupon that stays ISSUED": insertVoiding("issued", "null") },
  voiding_reason_is_at_most_1000_characters: { "a longer one": insertVoiding("issued", "null", "repeat('x', 1001)") },
};

const redemptionAttempts: Attempts = {
  redemption_terms_are_fixed: { "another discount": updateRedemption("redeemed", "discount_minor = 1") },
  redemption_transition_is_legal: {
    "a redemption cancelled": updateRedemption("redeemed", "status = 'CANCELLED', ended_at = now()"),
    "a cancelled lock locked again": updateRedemption("cancelled", "status = 'LOCKED'"),
    "a reversal undone": updateRedemption("reversed", "status = 'REDEEMED'"),
  },
  redemption_is_of_a_coupon_at_a_merchant: {
    "a redemption of an unknown coupon": insertRedemption("cancelled", { coupon_id: "gen_random_uuid()" }),
    "a redemption at an unknown merchant": insertRedemption("cancelled", {
      merchant_id: "2147483647",
      ended_at: "now()",
    }),
  },
  status_agrees_with_times: {
    "an unknown status": insertRedemption("cancelled", { status: "'DONE'", ended_at: "null" }),
    "a redemption that was cancelled": insertRedemption("redeemed", { status: "'CANCELLED'", ended_at: "now()" }),
    "a lock that never expires": updateRedemption("locked", "lock_expires_at = null"),
    "a lock of more than 7 days": updateRedemption("locked", "lock_expires_at = started_at + interval '169 hours'"),
    "redeemed when it expires": updateRedemption("locked", "status = 'REDEEMED', redeemed_at = lock_expires_at"),
    "a redeemed lock that expired before": insertRedemption("locked", {
      status: "'REDEEMED'",
      redeemed_at: "now()",
      lock_expires_at: "now() - interval '1 second'",
    }),
    "redeemed without a time": updateRedemption("locked", "status = 'REDEEMED'"),
    "a live lock with an end": updateRedemption("locked", "ended_at = now()"),
  },
  amount_is_not_negative: { "a negative discount": insertRedemption("cancelled", { discount_minor: "-1" }) },
  discount_is_within_order: { "a larger discount": insertRedemption("cancelled", { order_minor: "499" }) },
  time_is_finite: {
    "a lock that expires at infinity": updateRedemption("locked", "lock_expires_at = 'infinity'"),
    "a redemption at -infinity": updateRedemption("locked", "status = 'REDEEMED', redeemed_at = '-infinity'"),
    "a ledger entry at infinity": insertEntry("locked", { recordedAt: "timestamptz 'infinity'" }),
    "a ledger entry of -infinity": insertEntry("locked", { occurredAt: "timestamptz '-infinity'" }),
  },
  store_or_terminal_is_at_most_64_characters: {
    "a long store": insertRedemption("cancelled", { store: "repeat('x', 65)" }),
    "a long terminal": insertRedemption("cancelled", { terminal: "repeat('x', 65)" }),
  },
  order_id_is_at_most_128_characters: {
    "a longer one": insertRedemption("cancelled", { order_id: "repeat('x', 129)" }),
  },
  reversal_reason_is_at_most_500_characters: {
    "a longer one": insertReversal("redeemed", undefined, "repeat('x', 501)"),
  },
  redemption_is_reversed_once: { "a second reversal": insertReversal("reversed") },
};

const ledgerAttempts: Attempts = {
  redemption_agrees_with_the_ledger: {
    "a new reversed redemption without ledger entries": insertRedemption("cancelled", {
      status: "'REVERSED'",
      redeemed_at: "now()",
      ended_at: "now()",
    }),
    "a new redemption without a ledger entry": `
      with new as (${insertLive("cancelled", "REDEEMED")})
      ${updateCoupon("cancelled", "status = 'REDEEMED'")}`,
    "a reversal at another time than its redemption": reverseRedemption("redeemed", {}, "now() - interval '1 day'"),
    "a lock redeemed without a ledger entry": together(
      updateRedemption("locked", "status = 'REDEEMED', redeemed_at = now()"),
      updateCoupon("locked", "status = 'REDEEMED'"),
    ),
    "a reversal without a ledger entry": updateRedemption("redeemed", "status = 'REVERSED', ended_at = now()"),
    "a reversal of a redemption that stays REDEEMED": insertReversal("redeemed"),
    "a reversal of a lock": insertReversal("cancelled"),
  },
  ledger_agrees_with_the_redemption: {
    "a ledger entry for a lock": insertEntry("locked"),
    "less than the granted discount": redeemLock("locked", { amount: "499" }),
    "a ledger entry in the future": redeemLock("locked", { recordedAt: "now() + interval '36 years'" }),
    "a redemption in another currency": redeemLock("locked", { currency: "'JPY'" }),
    "a reversal in another currency": reverseRedemption("redeemed", { currency: "'JPY'" }),
    "a negative redemption": redeemLock("locked", { amount: "-500" }),
    "a positive reversal": reverseRedemption("redeemed", { amount: "500" }),
    "the redemption of another coupon": redeemLock("locked", { coupon: ":issued::uuid" }),
    "the reversal of another coupon": reverseRedemption("redeemed", { coupon: ":issued::uuid" }),
    "a redemption for another distributor": redeemLock("locked", { distributor: "2147483647" }),
    "a reversal for another distributor": reverseRedemption("redeemed", { distributor: "2147483647" }),
    "a redemption at another time": redeemLock("locked", { occurredAt: "now() - interval '1 second'" }),
    "a reversal at the time of the redemption": reverseRedemption("redeemed", { occurredAt: "redeemed_at" }),
  },
  event_is_in_one_table: {
    "a ledger entry with the number of another event": redeemLock("locked", {
      seq: "(select min(event_seq) from core.event)",
    }),
    "a reversal with the ID of another event": reverseRedemption(
      "redeemed",
      { amount: "-500" },
      "now()",
      "(select min(event_id::text)::uuid from core.event where event_type = 'coupon.voided')",
    ),
  },
  ledger_entry_event_seq_key: {
    "two ledger entries with one number": redeemLock("locked", {
      seq: "(select min(event_seq) from core.ledger_entry)",
    }),
  },
  entry_type_is_known: { "an unknown type of entry": insertEntry("locked", {}, "CORRECTION") },
  ledger_entry_pkey: { "a second entry for one redemption": insertEntry("redeemed") },
};

export const attemptsOnCoupons = [couponAttempts, redemptionAttempts, ledgerAttempts];

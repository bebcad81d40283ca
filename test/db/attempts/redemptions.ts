// Attempts on redemptions, reversals and the ledger.
import {
  insertEntry,
  insertLive,
  insertRedemption,
  insertReversal,
  redeemLock,
  reverseRedemption,
  together,
  update,
  updateCoupon,
  updateRedemption,
  type Attempts,
} from "./statements.ts";

export const redemptionAttempts: Attempts = {
  redemption_terms_are_fixed: {
    "another discount": updateRedemption("redeemed", "discount_minor = 1"),
    "another order": updateRedemption("redeemed", "order_minor = order_minor + 1"),
    "another merchant": updateRedemption("redeemed", "merchant_id = 0"),
    "another coupon": updateRedemption("cancelled", "coupon_id = '00000000-0000-7000-8000-000000000001'"),
    "another time of redemption": updateRedemption("redeemed", "redeemed_at = now()"),
    "another time of reversal": updateRedemption("reversed", "ended_at = now()"),
  },
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
    "a lock redeemed when it has expired": updateRedemption(
      "locked",
      "status = 'REDEEMED', redeemed_at = lock_expires_at",
    ),
    "a redeemed lock that expired before": insertRedemption("locked", {
      status: "'REDEEMED'",
      redeemed_at: "now()",
      lock_expires_at: "now() - interval '1 second'",
    }),
    "redeemed without a time": updateRedemption("locked", "status = 'REDEEMED'"),
    "a live lock with an end": updateRedemption("locked", "ended_at = now()"),
  },
  amount_is_not_negative: { "a negative discount": insertRedemption("cancelled", { discount_minor: "-1" }) },
  discount_is_within_order: {
    "a discount larger than the order": insertRedemption("cancelled", { order_minor: "499" }),
  },
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
    "a long order_id": insertRedemption("cancelled", { order_id: "repeat('x', 129)" }),
  },
  reversal_reason_is_at_most_500_characters: {
    "a long reason of a reversal": insertReversal("redeemed", undefined, "repeat('x', 501)"),
  },
  redemption_is_kept: {
    "a redemption deleted": "delete from core.redemption where redemption_id = :cancelled_redemption",
  },
  reversal_is_kept: { "a reversal changed": update("reversal", "reason = 'another'") },
  redemption_is_reversed_once: { "a second reversal": insertReversal("reversed") },
};

export const ledgerAttempts: Attempts = {
  redemption_agrees_with_the_ledger: {
    "a new reversed redemption without ledger entries": insertRedemption("cancelled", {
      status: "'REVERSED'",
      redeemed_at: "now()",
      ended_at: "now()",
    }),
    "a new redemption without a ledger entry": `
      with new as (${insertLive("cancelled", "REDEEMED")})
      ${updateCoupon("cancelled", "status = 'REDEEMED'")}`,
    "a reversal at another time than its redemption's end": reverseRedemption(
      "redeemed",
      {},
      "now() - interval '1 day'",
    ),
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
  ledger_is_immutable: {
    "an amount corrected": update("ledger_entry", "amount_minor = 0"),
    "an entry deleted": "delete from core.ledger_entry",
    "the ledger truncated": "truncate core.ledger_entry cascade",
  },
};

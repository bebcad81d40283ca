// Attempts on coupons, their voidings, and coupons against their redemptions.
import {
  insertCopy,
  insertCoupon,
  insertLive,
  insertVoiding,
  together,
  update,
  updateCoupon,
  updateRedemption,
  type Attempts,
} from "./statements.ts";

export const couponAttempts: Attempts = {
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
    "a lock cancelled while its coupon stays LOCKED": updateRedemption(
      "locked",
      "status = 'CANCELLED', ended_at = now()",
    ),
  },
  coupon_transition_is_legal: {
    "a voided coupon issued again": updateCoupon("voided", "status = 'ISSUED'"),
    "a redeemed coupon issued again without a reversal": updateCoupon("redeemed", "status = 'ISSUED'"),
    "a redeemed coupon voided": updateCoupon("redeemed", "status = 'VOIDED'"),
    "a coupon issued again after a reversal, against its template": updateCoupon("reversed", "status = 'ISSUED'"),
    "a coupon expired after a reversal, against its template": updateCoupon("reversed", "status = 'EXPIRED'"),
    "a redeemed coupon locked": updateCoupon("redeemed", "status = 'LOCKED'"),
    "an expired coupon issued again past its valid_to": together(
      updateCoupon("past", "status = 'EXPIRED'"),
      updateCoupon("past", "status = 'ISSUED'"),
    ),
  },
  coupon_identity_is_fixed: {
    "another code": updateCoupon("issued", "lookup_hash = gen_random_uuid()"),
    "another batch": updateCoupon("issued", "batch_id = 0"),
    "another number": updateCoupon("issued", "number = 99"),
  },
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
    "the number of another coupon": insertCoupon({ batch_id: "(o.x).batch_id", number: "(o.x).number" }),
  },
  extended_coupon_expires: {
    "an extension deleted before its coupon is EXPIRED": together(
      updateCoupon("extended", "valid_to = now() - interval '1 second'"),
      "delete from core.coupon_extension",
    ),
    "an extension deleted before its end": together(
      updateCoupon("extended", "status = 'EXPIRED'"),
      "delete from core.coupon_extension",
    ),
    "an extension with another end": update("coupon_extension", "valid_to = valid_to + interval '1 day'"),
    "an extension of a coupon that was not extended": insertCopy("coupon_extension", "true", { coupon_id: ":issued" }),
  },
  extension_is_kept: { "all extensions truncated": "truncate core.coupon_extension" },
  coupon_is_kept: {
    "a coupon deleted": "delete from core.coupon where coupon_id = :issued",
    "all coupons truncated": "truncate core.coupon cascade",
  },
  voiding_is_kept: { "a voiding deleted": "delete from core.voiding" },
  voiding_is_at_a_merchant: {
    "a voiding at an unknown merchant": together(
      insertVoiding("issued", "2147483647"),
      updateCoupon("issued", "status = 'VOIDED'"),
    ),
  },
  voiding_agrees_with_its_coupon: {
    "a voiding of a coupon that stays ISSUED": insertVoiding("issued", "null"),
  },
  voiding_reason_is_at_most_1000_characters: {
    "a long reason of a voiding": insertVoiding("issued", "null", "repeat('x', 1001)"),
  },
};

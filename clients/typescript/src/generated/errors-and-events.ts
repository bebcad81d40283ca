// Generated from docs/openapi by `npm run openapi`. Do not edit.
export type WebhookEvent =
  | CouponRedeemed
  | CouponReversed
  | CouponExpired
  | CouponVoided
  | BatchGenerated
  | AllocationCompleted
  | ReconciliationReady;

/**
 * Present only if the webhook or the pull asks for it with expand. What does not apply is null.
 *
 */
export interface EventData {
  batch_id: string;
  template_id: string;
  merchant_id: string | null;
  store: string | null;
  terminal: string | null;
  order_id: string | null;
  order_amount: number | null;
  /** For a reversal, the discount of its redemption. Never negative. */
  discount_amount: number | null;
  currency: string | null;
  reversal_id: string | null;
}
export interface CouponRedeemed {
  /** The same in the feed and in every attempt of a webhook. */
  event_id: string;
  event_type: "coupon.redeemed";
  coupon_id: string;
  redemption_id: string;
  /** UTC, with milliseconds. */
  occurred_at: string;
  /** UTC, with milliseconds. */
  recorded_at: string;
  data?: EventData;
}
export interface CouponReversed {
  /** The same in the feed and in every attempt of a webhook. */
  event_id: string;
  event_type: "coupon.reversed";
  coupon_id: string;
  redemption_id: string;
  /** UTC, with milliseconds. */
  occurred_at: string;
  /** UTC, with milliseconds. */
  recorded_at: string;
  data?: EventData;
}
export interface CouponExpired {
  /** The same in the feed and in every attempt of a webhook. */
  event_id: string;
  event_type: "coupon.expired";
  coupon_id: string;
  redemption_id: null;
  /** UTC, with milliseconds. */
  occurred_at: string;
  /** UTC, with milliseconds. */
  recorded_at: string;
  data?: EventData;
}
export interface CouponVoided {
  /** The same in the feed and in every attempt of a webhook. */
  event_id: string;
  event_type: "coupon.voided";
  coupon_id: string;
  redemption_id: null;
  /** UTC, with milliseconds. */
  occurred_at: string;
  /** UTC, with milliseconds. */
  recorded_at: string;
  data?: EventData;
}
export interface BatchGenerated {
  /** The same in the feed and in every attempt of a webhook. */
  event_id: string;
  event_type: "batch.generated";
  batch_id: string;
  /** UTC, with milliseconds. */
  occurred_at: string;
}
export interface AllocationCompleted {
  /** The same in the feed and in every attempt of a webhook. */
  event_id: string;
  event_type: "allocation.completed";
  batch_id: string;
  /** UTC, with milliseconds. */
  occurred_at: string;
}
export interface ReconciliationReady {
  /** The same in the feed and in every attempt of a webhook. */
  event_id: string;
  event_type: "reconciliation.ready";
  business_date: string;
  distributor_party_id: string;
  /** UTC, with milliseconds. */
  occurred_at: string;
}
export interface Errors {
  /** The Variant A tenant has several distributors. Name one as `distributor`. */
  AMBIGUOUS_DISTRIBUTOR: null;
  /** The batch is already released. */
  BATCH_ALREADY_ALLOCATED: null;
  /** The batch is still being minted. Try later with a new `request_id`. */
  BATCH_NOT_COMPLETED: null;
  /** The maker has suspended the batch. Refuse the coupon; it may work later, with a new `request_id`. A recalled batch stays suspended for good. */
  BATCH_SUSPENDED: null;
  /** The operator has destroyed the codes of the batch, so nobody can fetch them again. */
  CODES_DESTROYED: null;
  /** The service never made this code: it was mistyped or invented. Type or scan it again. */
  COUPON_CODE_INVALID: null;
  /** The validity of the coupon ended at `details.valid_to`. Refuse it. */
  COUPON_EXPIRED: {
    /** UTC, with milliseconds. */
    valid_to: string;
  };
  /** Another request holds the coupon until `details.lock_expires_at`. Try later with a new `request_id`. */
  COUPON_LOCKED: {
    /** UTC, with milliseconds. */
    lock_expires_at: string;
  };
  /** The maker has not released the batch. Refuse the coupon. */
  COUPON_NOT_RELEASED: null;
  /** Only an unused coupon can be voided. */
  COUPON_NOT_VOIDABLE: null;
  /** The validity of the coupon begins at `details.valid_from`. Refuse it until then. */
  COUPON_NOT_YET_VALID: {
    /** UTC, with milliseconds. */
    valid_from: string;
  };
  /** The coupon was redeemed at `details.redeemed_at`. Refuse it. */
  COUPON_REDEEMED: {
    /** UTC, with milliseconds. */
    redeemed_at: string;
  };
  /** The coupon was voided at `details.voided_at`. Refuse it. */
  COUPON_VOIDED: {
    /** UTC, with milliseconds. */
    voided_at: string;
  };
  /** The coupon is in `details.currency`. Refuse it for an order in another currency. */
  CURRENCY_MISMATCH: {
    currency: string;
  };
  /** The discount needs what `details.missing` names. Send it with a new `request_id`. */
  DISCOUNT_NOT_COMPUTABLE: {
    missing: "order_amount" | "redemption_context.items" | "the amount of each matching item";
  };
  /** The `request_id` was used for another request. Fix the caller. */
  IDEMPOTENCY_KEY_REUSED: null;
  /** The request may or may not have taken effect. Repeat it with the same `request_id`. */
  INTERNAL_ERROR: null;
  /** `details.issues` lists each field (`path`) and its `message`. If the path is `coupon`, the code was mistyped: it has too few or too many characters, or one that no code has. Otherwise fix the request. */
  INVALID_REQUEST: {
    issues: {
      path: string;
      message: string;
    }[];
  };
  /** The lock was cancelled. Lock again with a new `request_id`. */
  LOCK_CANCELLED: null;
  /** The lock was confirmed. Do not confirm or cancel it; reverse `details.redemption` if needed. */
  LOCK_CONFIRMED: {
    redemption: string;
  };
  /** The lock ended at `details.lock_expires_at`. Lock again with a new `request_id`. */
  LOCK_EXPIRED: {
    /** UTC, with milliseconds. */
    lock_expires_at: string;
  };
  /** You have no lock with this `lock_request_id` on this coupon at this merchant. After a confirm: lock first. After a cancel: nothing is left to give up. */
  LOCK_NOT_FOUND: null;
  /** The coupon is not for this merchant. Refuse the coupon. */
  MERCHANT_NOT_IN_SCOPE: null;
  /** The path does not have this method; see the header `allow`. Fix the request. */
  METHOD_NOT_ALLOWED: null;
  /** The nonce was used before. Sign anew and repeat. */
  NONCE_REUSED: null;
  /** The tenant is no sandbox, so its business days close only after their end. */
  NOT_A_SANDBOX: null;
  /** `details.resource` names what is missing: merchant, coupon, store, terminal, template, distributor, batch, redemption, reconciliation, request, webhook or event. */
  NOT_FOUND: {
    resource:
      | "merchant"
      | "coupon"
      | "store"
      | "terminal"
      | "template"
      | "distributor"
      | "batch"
      | "redemption"
      | "reconciliation"
      | "request"
      | "webhook"
      | "event";
  };
  /** The coupon is for none of the items of the order. */
  NO_ELIGIBLE_ITEMS: null;
  /** The party has no public key, so its codes cannot be encrypted. Give the operator one (`age1…`). */
  NO_PUBLIC_KEY: null;
  /** The coupon is for orders from `details.min_order_amount` on. Try a larger one with a new `request_id`. */
  ORDER_BELOW_MINIMUM: {
    /** In the tenant's amount unit. */
    min_order_amount: number;
    currency: string;
  };
  /** The body is larger than 64 KiB. Fix the request. */
  PAYLOAD_TOO_LARGE: null;
  /** A limit is used up; `details.limit` names it. requests: wait as long as `Retry-After` says, then repeat. wrong_codes: the code is wrong, type or scan it again. */
  RATE_LIMITED: {
    limit: "requests" | "wrong_codes";
  };
  /** The redemption was not completed, so there is nothing to reverse. */
  REDEMPTION_NOT_REVERSIBLE: null;
  /** `details.reversal` has reversed the redemption at `details.reversed_at`. Nothing is left to do. */
  REDEMPTION_REVERSED: {
    reversal: string;
    /** UTC, with milliseconds. */
    reversed_at: string;
  };
  /** The same request still runs. Repeat it. */
  REQUEST_IN_PROGRESS: null;
  /** No such path. Fix the request. */
  ROUTE_NOT_FOUND: null;
  /** The validity of the template has ended, so no batch can be made from it. Ask the operator to extend the template. */
  TEMPLATE_EXPIRED: null;
  /** Your clock is more than 300 seconds off. Compare `details.server_time`, sign anew and repeat. */
  TIMESTAMP_OUT_OF_WINDOW: {
    /** UTC, with milliseconds. */
    server_time: string;
  };
  /** `details.issues` names each header (`path`) that is missing or malformed. Without it, the signature is wrong, or the key is unknown or revoked: compare key, secret and signing step by step. */
  UNAUTHENTICATED: {
    issues: {
      path: string;
      message: string;
    }[];
  } | null;
  /** The request may or may not have taken effect. Wait as long as `Retry-After` says, then repeat it. */
  UNAVAILABLE: null;
  /** The body is not `application/json` in UTF-8, or it is compressed. Fix the request. */
  UNSUPPORTED_MEDIA_TYPE: null;
  /** Your webhook is off, so nothing would be sent. Ask the operator to enable it, then send a new `request_id`. */
  WEBHOOK_DISABLED: null;
}

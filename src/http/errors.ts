// Every error code, in order of precedence: if several errors apply, the first is returned. Both problem.ts and
// rules.refuse (db/code/rules/answer/refuse.sql) return only these. `meaning` is for integrators: docs/integrate.md and
// the API description show it.
import { z } from "zod";
import { amountOfAnswer, currencyOfAnswer, madeId, timeOfAnswer } from "./answer-fields.ts";

const resources = [
  "merchant",
  "coupon",
  "store",
  "terminal",
  "template",
  "distributor",
  "batch",
  "redemption",
  "reconciliation",
  "request",
  "webhook",
  "event",
] as const;
export type Resource = (typeof resources)[number];

const listedIssues = z
  .array(z.object({ path: z.string(), message: z.string() }))
  .min(1)
  .max(20);

// details: the schema of the field `details` in the error body. Without it, the field is null.
export type ErrorEntry = { status: number; meaning: string; details?: z.ZodType };

export const errors = {
  ROUTE_NOT_FOUND: { status: 404, meaning: "No such path. Fix the request." },
  METHOD_NOT_ALLOWED: {
    status: 405,
    meaning: "The path does not have this method; see the header `allow`. Fix the request.",
  },
  PAYLOAD_TOO_LARGE: { status: 413, meaning: "The body is larger than 64 KiB. Fix the request." },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    meaning: "The body is not `application/json` in UTF-8, or it is compressed. Fix the request.",
  },
  UNAUTHENTICATED: {
    status: 401,
    meaning:
      "`details.issues` names each header (`path`) that is missing or malformed. Without it, the signature is wrong, " +
      "or the key is unknown or revoked: compare key, secret and signing step by step.",
    details: z.object({ issues: listedIssues }).nullable(),
  },
  TIMESTAMP_OUT_OF_WINDOW: {
    status: 401,
    meaning: "Your clock is more than 300 seconds off. Compare `details.server_time`, sign anew and repeat.",
    details: z.object({ server_time: timeOfAnswer }),
  },
  NONCE_REUSED: { status: 401, meaning: "The nonce was used before. Sign anew and repeat." },
  RATE_LIMITED: {
    status: 429,
    meaning:
      "A limit is used up; `details.limit` names it. requests: wait as long as `Retry-After` says, then repeat. " +
      "wrong_codes: the code is wrong, type or scan it again.",
    details: z.object({ limit: z.enum(["requests", "wrong_codes"]) }),
  },
  INVALID_REQUEST: {
    status: 400,
    meaning:
      "`details.issues` lists each field (`path`) and its `message`. If the path is `coupon`, the code was mistyped: " +
      "it has too few or too many characters, or one that no code has. Otherwise fix the request.",
    details: z.object({ issues: listedIssues }),
  },
  COUPON_CODE_INVALID: {
    status: 422,
    meaning: "The service never made this code: it was mistyped or invented. Type or scan it again.",
  },
  IDEMPOTENCY_KEY_REUSED: {
    status: 422,
    meaning: "The `request_id` was used for another request. Fix the caller.",
  },
  REQUEST_IN_PROGRESS: { status: 409, meaning: "The same request still runs. Repeat it." },
  NOT_A_SANDBOX: {
    status: 409,
    meaning: "The tenant is no sandbox, so its business days close only after their end.",
  },
  NOT_FOUND: {
    status: 404,
    meaning: `\`details.resource\` names what is missing: ${resources.slice(0, -1).join(", ")} or ${resources.at(-1)}.`,
    details: z.object({ resource: z.enum(resources) }),
  },
  AMBIGUOUS_DISTRIBUTOR: {
    status: 422,
    meaning: "The Variant A tenant has several distributors. Name one as `distributor`.",
  },
  MERCHANT_NOT_IN_SCOPE: { status: 422, meaning: "The coupon is not for this merchant. Refuse the coupon." },
  LOCK_NOT_FOUND: {
    status: 409,
    meaning:
      "You have no lock with this `lock_request_id` on this coupon at this merchant. After a confirm: lock first. " +
      "After a cancel: nothing is left to give up.",
  },
  LOCK_EXPIRED: {
    status: 409,
    meaning: "The lock ended at `details.lock_expires_at`. Lock again with a new `request_id`.",
    details: z.object({ lock_expires_at: timeOfAnswer }),
  },
  LOCK_CANCELLED: { status: 409, meaning: "The lock was cancelled. Lock again with a new `request_id`." },
  LOCK_CONFIRMED: {
    status: 409,
    meaning: "The lock was confirmed. Do not confirm or cancel it; reverse `details.redemption` if needed.",
    details: z.object({ redemption: madeId("red") }),
  },
  BATCH_SUSPENDED: {
    status: 409,
    meaning:
      "The maker has suspended the batch. Refuse the coupon; it may work later, with a new `request_id`. " +
      "A recalled batch stays suspended for good.",
  },
  COUPON_VOIDED: {
    status: 409,
    meaning: "The coupon was voided at `details.voided_at`. Refuse it.",
    details: z.object({ voided_at: timeOfAnswer }),
  },
  COUPON_REDEEMED: {
    status: 409,
    meaning: "The coupon was redeemed at `details.redeemed_at`. Refuse it.",
    details: z.object({ redeemed_at: timeOfAnswer }),
  },
  COUPON_EXPIRED: {
    status: 409,
    meaning: "The validity of the coupon ended at `details.valid_to`. Refuse it.",
    details: z.object({ valid_to: timeOfAnswer }),
  },
  COUPON_LOCKED: {
    status: 409,
    meaning: "Another request holds the coupon until `details.lock_expires_at`. Try later with a new `request_id`.",
    details: z.object({ lock_expires_at: timeOfAnswer }),
  },
  COUPON_NOT_RELEASED: { status: 409, meaning: "The maker has not released the batch. Refuse the coupon." },
  COUPON_NOT_YET_VALID: {
    status: 409,
    meaning: "The validity of the coupon begins at `details.valid_from`. Refuse it until then.",
    details: z.object({ valid_from: timeOfAnswer }),
  },
  TEMPLATE_EXPIRED: {
    status: 409,
    meaning:
      "The validity of the template has ended, so no batch can be made from it. " +
      "Ask the operator to extend the template.",
  },
  COUPON_NOT_VOIDABLE: { status: 409, meaning: "Only an unused coupon can be voided." },
  REDEMPTION_NOT_REVERSIBLE: {
    status: 409,
    meaning: "The redemption was not completed, so there is nothing to reverse.",
  },
  REDEMPTION_REVERSED: {
    status: 409,
    meaning: "`details.reversal` has reversed the redemption at `details.reversed_at`. Nothing is left to do.",
    details: z.object({ reversal: madeId("rvs"), reversed_at: timeOfAnswer }),
  },
  BATCH_NOT_COMPLETED: {
    status: 409,
    meaning: "The batch is still being minted. Try later with a new `request_id`.",
  },
  BATCH_ALREADY_ALLOCATED: { status: 409, meaning: "The batch is already released." },
  CODES_DESTROYED: {
    status: 409,
    meaning: "The operator has destroyed the codes of the batch, so nobody can fetch them again.",
  },
  NO_PUBLIC_KEY: {
    status: 409,
    meaning: "The party has no public key, so its codes cannot be encrypted. Give the operator one (`age1…`).",
  },
  WEBHOOK_DISABLED: {
    status: 409,
    meaning:
      "Your webhook is off, so nothing would be sent. Ask the operator to enable it, then send a new `request_id`.",
  },
  CURRENCY_MISMATCH: {
    status: 422,
    meaning: "The coupon is in `details.currency`. Refuse it for an order in another currency.",
    details: z.object({ currency: currencyOfAnswer }),
  },
  DISCOUNT_NOT_COMPUTABLE: {
    status: 422,
    meaning: "The discount needs what `details.missing` names. Send it with a new `request_id`.",
    details: z.object({
      missing: z.enum(["order_amount", "redemption_context.items", "the amount of each matching item"]),
    }),
  },
  ORDER_BELOW_MINIMUM: {
    status: 422,
    meaning: "The coupon is for orders from `details.min_order_amount` on. Try a larger one with a new `request_id`.",
    details: z.object({ min_order_amount: amountOfAnswer, currency: currencyOfAnswer }),
  },
  NO_ELIGIBLE_ITEMS: { status: 422, meaning: "The coupon is for none of the items of the order." },
  INTERNAL_ERROR: {
    status: 500,
    meaning: "The request may or may not have taken effect. Repeat it with the same `request_id`.",
  },
  UNAVAILABLE: {
    status: 503,
    meaning: "The request may or may not have taken effect. Wait as long as `Retry-After` says, then repeat it.",
  },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errors;

// Checks an answer against the documents: status, code, shape, request_id and time.
import type { Reply } from "./client.ts";

const codes: Record<number, string[]> = {
  400: ["INVALID_REQUEST"],
  401: ["UNAUTHENTICATED", "TIMESTAMP_OUT_OF_WINDOW", "NONCE_REUSED"],
  404: ["ROUTE_NOT_FOUND", "NOT_FOUND"],
  405: ["METHOD_NOT_ALLOWED"],
  409: [
    "REQUEST_IN_PROGRESS",
    "LOCK_NOT_FOUND",
    "LOCK_EXPIRED",
    "LOCK_CANCELLED",
    "LOCK_CONFIRMED",
    "COUPON_VOIDED",
    "COUPON_REDEEMED",
    "COUPON_EXPIRED",
    "COUPON_LOCKED",
    "COUPON_NOT_RELEASED",
    "COUPON_NOT_YET_VALID",
    "TEMPLATE_EXPIRED",
    "COUPON_NOT_VOIDABLE",
    "REDEMPTION_NOT_REVERSIBLE",
    "REDEMPTION_REVERSED",
    "BATCH_NOT_COMPLETED",
    "BATCH_ALREADY_ALLOCATED",
  ],
  413: ["PAYLOAD_TOO_LARGE"],
  415: ["UNSUPPORTED_MEDIA_TYPE"],
  422: [
    "COUPON_CODE_INVALID",
    "IDEMPOTENCY_KEY_REUSED",
    "MERCHANT_NOT_IN_SCOPE",
    "CURRENCY_MISMATCH",
    "DISCOUNT_NOT_COMPUTABLE",
    "ORDER_BELOW_MINIMUM",
    "NO_ELIGIBLE_ITEMS",
    "AMBIGUOUS_DISTRIBUTOR",
  ],
  // Answered before there is a complete request.
  431: ["PAYLOAD_TOO_LARGE"],
};
const withinMs = 4_000;

type Given = Pick<Reply, "status" | "headers" | "json" | "text">;

// Describes what is wrong with an answer; null: nothing.
export function findUndocumented({ status, headers, json, text }: Given, afterMs: number): string | null {
  if (afterMs > withinMs) return `answered after ${Math.round(afterMs)} ms`;
  if (typeof headers["x-request-id"] !== "string" || headers["x-request-id"] === "")
    return `${status} without x-request-id`;
  if (status === 200) return json === null ? `200 ${text}` : null;
  if (!codes[status]?.includes(json?.code)) return `${status} ${text}`;
  if (Object.keys(json).join() !== "code,message,request_id,details" || typeof json.message !== "string")
    return `not the shape of an error: ${text}`;
  const name = json.request_id.replace(/[^ -~]|^ +| +$/gu, encodeURIComponent);
  // A replay keeps the request_id of the first call, which may differ from this one's.
  return headers["x-request-id"] === name || headers["idempotent-replayed"] === "true"
    ? null
    : `x-request-id is ${String(headers["x-request-id"])}, request_id ${json.request_id}`;
}

// Whether the service records the answer, so that a retry gets the same bytes.
export function isRecorded({ status, json }: Given): boolean {
  return (
    status === 200 ||
    ([404, 409, 422].includes(status) &&
      !["COUPON_CODE_INVALID", "IDEMPOTENCY_KEY_REUSED", "REQUEST_IN_PROGRESS", "ROUTE_NOT_FOUND"].includes(json.code))
  );
}

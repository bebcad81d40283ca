// When a call is repeated. Every repeat of a write has the same request_id, so the service acts once.
import type { IncomingHttpHeaders } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { UnansweredError, type CouponError, type RefusedError, type Refusal } from "./errors.ts";

const longestBackoffMs = 5_000;
// A longer timer of Node ends at once.
export const longestTimerMs = 2 ** 31 - 1;

// Refusals that decide nothing about the request.
const undecided = new Set(["REQUEST_IN_PROGRESS", "NONCE_REUSED", "TIMESTAMP_OUT_OF_WINDOW"]);

export function isRepeatable(status: number, refusal: Refusal | null): boolean {
  // A wrong code stays wrong. The cashier, who can type it again, must not wait.
  if ((refusal?.details as { limit?: unknown } | null | undefined)?.limit === "wrong_codes") return false;
  return status >= 500 || status === 429 || status === 408 || (refusal !== null && undecided.has(refusal.code));
}

// The service records refusals of these statuses, except those codes. Others are about one attempt, and say nothing
// about an earlier one.
const recordedStatuses = new Set([404, 409, 422]);
const unrecordedCodes = new Set(["ROUTE_NOT_FOUND", "COUPON_CODE_INVALID", "IDEMPOTENCY_KEY_REUSED"]);
// Another copy of the attempt has arrived, and its outcome is not known.
const copyCodes = new Set(["REQUEST_IN_PROGRESS", "NONCE_REUSED"]);

/** Whether the call is open after an attempt with this error: it may have taken effect, or may still do so. */
export function isOpenAfter(error: CouponError, wasOpen: boolean): boolean {
  if (error instanceof UnansweredError) return true;
  const { status, code } = error as RefusedError;
  if (status >= 500 || copyCodes.has(code)) return true;
  return wasOpen && (!recordedStatuses.has(status) || unrecordedCodes.has(code));
}

/** Null without the header, or if it is malformed. The value is seconds, or a date by the clock of the sender. */
export function readRetryAfter({ "retry-after": header, date }: IncomingHttpHeaders): number | null {
  if (header === undefined) return null;
  if (/^\d+$/.test(header)) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, at - (Date.parse(date ?? "") || Date.now()));
}

/**
 * Waits before attempt `next`: as long as the service asks, and a random time that doubles with each attempt, so that
 * tills that failed together do not come back together.
 */
export async function waitBefore(next: number, retryAfterMs: number | null, signal?: AbortSignal): Promise<void> {
  const backoffMs = Math.random() * Math.min(longestBackoffMs, 100 * 2 ** (next - 1));
  const waitMs = Math.min((retryAfterMs ?? 0) + backoffMs, longestTimerMs);
  const isOver = sleep(waitMs, undefined, signal === undefined ? {} : { signal });
  await isOver.catch(() => signal?.throwIfAborted());
}

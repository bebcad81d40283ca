// What a call can throw. No error has a coupon code or a secret: errors end up in logs.
import type { Errors } from "./generated/errors-and-events.ts";

export type ErrorCode = keyof Errors;

/** Base of all errors of this package, except for wrong arguments and an aborted signal. */
export class CouponError extends Error {
  override name = "CouponError";
}

/** The service answered with an error. */
export class RefusedError<C extends ErrorCode = ErrorCode> extends CouponError {
  override name = "RefusedError";
  /** Name of the method, such as `lock`. */
  readonly operation: string;
  readonly status: number;
  readonly code: C;
  readonly details: Errors[C];
  /** Yours, or one that the service made. The operator finds it in the log. */
  readonly requestId: string;
  /** How long the service asks to wait; null if it does not say. */
  readonly retryAfterMs: number | null;
  /**
   * An attempt of this call was not answered or failed, and the refusal says nothing about it. Repeat a write with the
   * same `request_id`, or ask for its outcome. It covers only this call, not an earlier one with that `request_id`.
   */
  mayHaveTakenEffect = false;

  constructor(operation: string, refusal: Refusal, retryAfterMs: number | null) {
    super(`${operation}: ${refusal.code} (${refusal.status}): ${refusal.message}${showIssues(refusal.details)}`);
    this.operation = operation;
    this.status = refusal.status;
    this.code = refusal.code as C;
    this.details = refusal.details as Errors[C];
    this.requestId = refusal.request_id;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * The service did not answer, or something between it and you did. A write may have taken effect: repeat it with the
 * same `request_id`.
 */
export class UnansweredError extends CouponError {
  override name = "UnansweredError";
  readonly operation: string;
  /** The status of an answer that did not come from the service; null if there was no answer. */
  readonly status: number | null;
  readonly mayHaveTakenEffect = true;

  constructor(operation: string, status: number | null, cause?: unknown) {
    const reason = status === null ? "no answer" : `status ${status}, not from the service`;
    super(`${operation}: ${reason}`, cause === undefined ? undefined : { cause });
    this.operation = operation;
    this.status = status;
  }
}

/** A download is incomplete or has other bytes than the service announced. Discard it and start it again. */
export class DownloadError extends CouponError {
  override name = "DownloadError";
}

/** A webhook is not from the service, or too old. Answer 401 and ignore it. */
export class WebhookError extends CouponError {
  override name = "WebhookError";
}

/**
 * Whether the service refused, with one of these codes if you name some. Then `error.details` has the type of the code.
 */
export function isRefused<C extends ErrorCode = ErrorCode>(
  error: unknown,
  ...codes: C[]
): error is { [One in C]: RefusedError<One> }[C] {
  return error instanceof RefusedError && (codes.length === 0 || codes.includes(error.code as C));
}

// The fields of a 400. The service never repeats their values.
function showIssues(details: unknown): string {
  const issues = (details as { issues?: unknown } | null)?.issues;
  if (!Array.isArray(issues)) return "";
  const named = (issues as ({ path?: unknown; message?: unknown } | null)[]).map(
    (issue) => `${issue?.path}: ${issue?.message}`,
  );
  return ` (${named.join("; ")})`;
}

export type Refusal = { status: number; code: string; message: string; request_id: string; details: unknown };

/** Null if the text is not an error body of the service. */
export function readRefusal(status: number, text: string): Refusal | null {
  const body = parse(text) as Partial<Refusal> | null;
  if (typeof body?.code !== "string" || typeof body.request_id !== "string") return null;
  return { status, code: body.code, message: String(body.message), request_id: body.request_id, details: body.details };
}

/** Undefined if the text is not JSON. The error of JSON.parse would quote the text. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// The errors that the HTTP layer itself returns, with their messages. All other errors come from the database, with
// bodies of the same shape, and pass through unread.
import { Unavailable } from "../common/unavailable.ts";
import { errors, type ErrorCode } from "./errors.ts";

const messages = {
  ROUTE_NOT_FOUND: "There is no such route.",
  METHOD_NOT_ALLOWED: "This path does not allow this method; see the Allow header.",
  PAYLOAD_TOO_LARGE: "The request is too large.",
  UNSUPPORTED_MEDIA_TYPE: "The body must be uncompressed application/json in UTF-8.",
  // One message for an unknown key and a wrong signature, so that it does not reveal which access keys exist.
  UNAUTHENTICATED: "The request is not signed by a known credential.",
  TIMESTAMP_OUT_OF_WINDOW: "x-svc-timestamp is more than 300 seconds off; compare details.server_time.",
  RATE_LIMITED: "Too many requests; try again later.",
  INVALID_REQUEST: "The request is not valid; see details.issues.",
  COUPON_CODE_INVALID: "The code is not a valid coupon code of this service.",
  INTERNAL_ERROR:
    "An internal error occurred. The request may or may not have taken effect; retry it with the same request_id.",
  UNAVAILABLE:
    "The service is unavailable. The request may or may not have taken effect; retry it with the same request_id.",
} as const satisfies Partial<Record<ErrorCode, string>>;

export type ProblemCode = keyof typeof messages;
export type Issue = { path: string; message: string };
// code: the error code in the body, null for a success. resource: what a NOT_FOUND of the database is about.
export type Answer = {
  status: number;
  code: string | null;
  resource?: string | null;
  body: string | Buffer | ReadableStream<Uint8Array>;
  headers?: Record<string, string>;
};

/** Headers of an answer after which the rest of the connection cannot be used. */
export const lastAnswer = { connection: "close" };

// status, message: instead of the usual one. reason: for the log only.
type More = { status?: number; headers?: Record<string, string>; message?: string; reason?: string };

export class Problem extends Error {
  override name = "Problem";
  readonly code: ProblemCode;
  readonly status: number;
  readonly details: Record<string, unknown> | null;
  readonly headers: Record<string, string>;
  readonly reason: string | undefined;
  constructor(code: ProblemCode, details: Record<string, unknown> | null = null, more: More = {}) {
    const { status = errors[code].status, headers = {}, message = messages[code], reason } = more;
    super(message);
    this.code = code;
    this.status = status;
    this.details = details;
    this.headers = headers;
    this.reason = reason;
  }
}

export function invalid(issues: Issue[]): Problem {
  return new Problem("INVALID_REQUEST", { issues });
}

/** Any other error is a bug. Its text goes only to the log. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  // The messages of the driver and the server hold no values for these errors.
  if (error instanceof Unavailable) return new Problem("UNAVAILABLE", null, { reason: error.message });
  return new Problem("INTERNAL_ERROR");
}

export const jsonHeaders = { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" };

const retryLater: ReadonlySet<ProblemCode> = new Set(["RATE_LIMITED", "UNAVAILABLE"]);

export function toAnswer(problem: Problem, requestId: string): Answer & { body: string } {
  const { status, code, message, details, headers } = problem;
  return {
    status,
    code,
    body: JSON.stringify({ code, message, request_id: requestId, details }),
    headers: retryLater.has(code) ? { "retry-after": "1", ...headers } : headers,
  };
}

// What the HTTP layer itself refuses, in the order in which it decides. The database decides the
// rest and answers with bodies of the same shape, which pass through here unread.

const problems = {
  ROUTE_NOT_FOUND: [404, "There is no such route."],
  METHOD_NOT_ALLOWED: [405, "This route has another method; see the Allow header."],
  PAYLOAD_TOO_LARGE: [413, "The request is larger than is accepted here."],
  UNSUPPORTED_MEDIA_TYPE: [415, "The body must be application/json in UTF-8, not compressed."],
  // One message for every reason: it must not tell which access keys exist.
  UNAUTHENTICATED: [401, "The request is not signed by a known credential."],
  TIMESTAMP_OUT_OF_WINDOW: [401, "x-svc-timestamp is more than 300 seconds off; compare details.server_time."],
  RATE_LIMITED: [429, "Too many requests; try again later."],
  INVALID_REQUEST: [400, "The request is not valid; see details.issues."],
  COUPON_CODE_INVALID: [422, "The code is not one of this service."],
  INTERNAL_ERROR: [500, "Something failed here. Nothing happened or it is not known; retry with the same request_id."],
  UNAVAILABLE: [
    503,
    "The service cannot answer now. Nothing happened or it is not known; retry with the same request_id.",
  ],
} as const;

export type ProblemCode = keyof typeof problems;
export type Issue = { path: string; message: string };
// code: the error code in the body, null for a success.
export type Answer = {
  status: number;
  code: string | null;
  body: string | ReadableStream<Uint8Array>;
  headers?: Record<string, string>;
};

export class Problem extends Error {
  readonly code: ProblemCode;
  readonly details: Record<string, unknown> | null;
  readonly headers: Record<string, string>;
  constructor(
    code: ProblemCode,
    details: Record<string, unknown> | null = null,
    headers: Record<string, string> = {},
    cause?: unknown,
  ) {
    super(problems[code][1], { cause });
    this.code = code;
    this.details = details;
    this.headers = headers;
  }
}

export function invalid(issues: Issue[]): Problem {
  return new Problem("INVALID_REQUEST", { issues });
}

export function unavailable(cause?: unknown): Problem {
  return new Problem("UNAVAILABLE", null, {}, cause);
}

const retryLater: ReadonlySet<ProblemCode> = new Set(["RATE_LIMITED", "UNAVAILABLE"]);

// What is no problem of ours is a bug: its text stays in the log.
export function toAnswer(error: unknown, requestId: string): Answer & { body: string } {
  const { code, details, headers } = error instanceof Problem ? error : new Problem("INTERNAL_ERROR");
  const [status, message] = problems[code];
  return {
    status,
    code,
    body: JSON.stringify({ code, message, request_id: requestId, details }),
    headers: retryLater.has(code) ? { "retry-after": "1", ...headers } : headers,
  };
}

// The error codes that an operation can answer with. Most follow from the properties of its route.
import type { Variant } from "../../gate/gate.ts";
import { errors, type ErrorCode } from "../errors.ts";
import type { Route } from "../route.ts";

const codes = Object.keys(errors) as ErrorCode[];

const always: readonly ErrorCode[] = [
  "PAYLOAD_TOO_LARGE",
  "UNAUTHENTICATED",
  "TIMESTAMP_OUT_OF_WINDOW",
  "NONCE_REUSED",
  "RATE_LIMITED",
  "INVALID_REQUEST",
  "INTERNAL_ERROR",
  "UNAVAILABLE",
];

/** In order of precedence. */
export function listRefusals(route: Route, variant: Variant): ErrorCode[] {
  const possible = new Set<ErrorCode>([
    ...always,
    ...(route.method === "POST" ? (["UNSUPPORTED_MEDIA_TYPE"] as const) : []),
    ...(route.resources?.(variant).includes("coupon") ? (["COUPON_CODE_INVALID"] as const) : []),
    ...(route.isWrite ? (["IDEMPOTENCY_KEY_REUSED", "REQUEST_IN_PROGRESS"] as const) : []),
    ...(route.resources === undefined ? [] : (["NOT_FOUND"] as const)),
    ...(route.refusals?.(variant) ?? []),
  ]);
  return codes.filter((code) => possible.has(code));
}

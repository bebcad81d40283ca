// Limits per credential: requests a second, and unknown coupon codes, so that codes cannot be guessed.
//
// A credential that has used up its budget of unknown codes must learn nothing more about codes. So operations whose
// answers reveal whether a code exists are refused before their input is read. A till must still be able to end its own
// locks, so confirm and cancel are performed, but their answer is sent only if it does not reveal whether a code
// exists. An answer that is held back is still recorded. So get_request is refused too, and an unknown code that it
// shows counts.
//
// These refusals are never recorded. An answer that the database has recorded stays final for its request_id.
import type { Limits } from "../config/config.ts";
import { Problem } from "./problem.ts";
import type { Reveals } from "./route.ts";
import { createBuckets, type Buckets, type Quota } from "./token-bucket.ts";

export type LimitName = "requests" | "unknown_codes";
export type Limiter = {
  /** Counts a correctly signed request, or throws its 429. Returns whether the budget of unknown codes is used up. */
  admit(accessKey: string, reveals: Reveals): boolean;
  /** Counts an unknown code. Throws a 429 if the budget is used up and the answer would reveal if a code exists. */
  review(accessKey: string, reveals: Reveals, isOverBudget: boolean, outcome: Judged): void;
  /** The rate limit headers of an answer, if there are any. */
  fields(accessKey: string): Record<string, string> | null;
};
// A Problem or an outcome of the gate. resource: what a NOT_FOUND is about, or a recorded NOT_FOUND that get_request
// shows.
type Judged = { code: string | null; resource?: string | null };

type Limit = { name: LimitName; buckets: Buckets; burst: number; policy: string };

// Errors of confirm and cancel that do not reveal whether a code exists. They are about the request itself, or about
// the caller's own lock or earlier request.
const independentOfCodes: ReadonlySet<string> = new Set([
  "UNAUTHENTICATED",
  "NONCE_REUSED",
  "INVALID_REQUEST",
  "LOCK_EXPIRED",
  "LOCK_CANCELLED",
  "LOCK_CONFIRMED",
  "IDEMPOTENCY_KEY_REUSED",
  "REQUEST_IN_PROGRESS",
]);

export function createLimiter(limits: Limits, onRefused?: (limit: LimitName) => void): Limiter {
  const { requestsPerSecond, requestBurst, unknownCodesPerMinute } = limits;
  const requests =
    requestsPerSecond === null ? null : openLimit("requests", { perSecond: requestsPerSecond, burst: requestBurst });
  const codes =
    unknownCodesPerMinute === null
      ? null
      : openLimit("unknown_codes", { perSecond: unknownCodesPerMinute / 60, burst: unknownCodesPerMinute });

  function refuse({ name, buckets }: Limit, accessKey: string): Problem {
    onRefused?.(name);
    const seconds = atLeastOne(buckets.secondsToNext(accessKey));
    return new Problem(
      "RATE_LIMITED",
      { limit: name },
      { headers: { "retry-after": String(seconds) }, reason: `too many ${name}` },
    );
  }

  return {
    admit(accessKey, reveals) {
      if (requests !== null) {
        if (requests.buckets.left(accessKey) < 1) throw refuse(requests, accessKey);
        requests.buckets.take(accessKey);
      }
      if (codes === null || codes.buckets.left(accessKey) >= 1) return false;
      if (reveals === "any code") throw refuse(codes, accessKey);
      return true;
    },
    review(accessKey, reveals, isOverBudget, outcome) {
      if (codes === null || reveals === "nothing") return;
      if (isOverBudget && dependsOnCodes(outcome)) throw refuse(codes, accessKey);
      if (!isOverBudget && isUnknownCode(outcome)) codes.buckets.take(accessKey);
    },
    fields(accessKey) {
      const shown: Limit[] = requests === null ? [] : [requests];
      // Shown only after an unknown code: a till that scans its codes correctly never sees this limit.
      if (codes !== null && codes.buckets.left(accessKey) < codes.burst) shown.push(codes);
      if (shown.length === 0) return null;
      return {
        "ratelimit-policy": shown.map(({ policy }) => policy).join(", "),
        ratelimit: shown.map((limit) => describe(limit, accessKey)).join(", "),
      };
    },
  };
}

function openLimit(name: LimitName, quota: Quota): Limit {
  const { burst, perSecond } = quota;
  return {
    name,
    buckets: createBuckets(quota),
    burst,
    policy: `"${name}";q=${burst};w=${Math.ceil(burst / perSecond)}`,
  };
}

// r: the remaining tokens. t: seconds until the next token if none remains, otherwise until the bucket is full.
function describe({ name, buckets }: Limit, accessKey: string): string {
  const left = Math.max(0, Math.floor(buckets.left(accessKey)));
  const seconds = left === 0 ? buckets.secondsToNext(accessKey) : buckets.secondsToFull(accessKey);
  return `"${name}";r=${left};t=${atLeastOne(seconds)}`;
}

const atLeastOne = (seconds: number) => Math.max(1, Math.ceil(seconds));

function isUnknownCode({ code, resource }: Judged): boolean {
  return code === "COUPON_CODE_INVALID" || resource === "coupon";
}

function dependsOnCodes({ code, resource }: Judged): boolean {
  if (code === null || independentOfCodes.has(code)) return false;
  return code !== "NOT_FOUND" || resource === "coupon";
}

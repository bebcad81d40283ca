// Limits per credential: requests a second, and codes a minute that are no coupon's.
//
// One broken scanner must not stop the other tills of a credential. So only wrong codes are refused, and a coupon's
// code is judged as always. Wrong codes (COUPON_CODE_INVALID) and unknown ones (the tag holds, but there is no such
// coupon here) have a count each, because a scanner makes only wrong ones. Beyond its count, either is answered with
// the same 429, so it does not tell whether the tag holds.
//
// A code is counted when its answer is known, in one step with the decision: however many requests run at once, no
// more are answered. A 429 is never recorded; see operation.ts.
import type { Limits } from "../config/config.ts";
import { createWindows } from "./minute-window.ts";
import { Problem } from "./problem.ts";
import { createBuckets, type Quotas } from "./token-bucket.ts";

export type LimitName = "requests" | "wrong_codes";
export type Limiter = {
  /** Counts a correctly signed request, or throws its 429. */
  admit(accessKey: string): void;
  /** Counts a wrong or unknown code, or throws its 429. Does nothing for other outcomes. */
  countCode(accessKey: string, outcome: Judged): void;
  /** The rate limit headers of an answer, if there are any. */
  fields(accessKey: string): Record<string, string> | null;
};
/** A Problem or an outcome of the gate. resource: what a NOT_FOUND is about. */
type Judged = { code: string | null; resource?: string | null };

// reason: for the log.
type Limit = { name: LimitName; quotas: Quotas; burst: number; policy: string; reason: string; message?: string };

export const isUnknownCoupon = ({ code, resource }: Judged): boolean => code === "NOT_FOUND" && resource === "coupon";

export function createLimiter(limits: Limits, onRefused?: (limit: LimitName) => void): Limiter {
  const { requestsPerSecond, requestBurst, wrongCodesPerMinute } = limits;
  const requests = requestsPerSecond === null ? null : openRequestLimit(requestsPerSecond, requestBurst);
  const codes =
    wrongCodesPerMinute === null
      ? null
      : { wrong: openCodeLimit("wrong", wrongCodesPerMinute), unknown: openCodeLimit("unknown", wrongCodesPerMinute) };

  function take({ name, quotas, reason, message }: Limit, accessKey: string): void {
    if (quotas.left(accessKey) >= 1) return quotas.take(accessKey);
    onRefused?.(name);
    const headers = { "retry-after": String(atLeastOne(quotas.secondsToNext(accessKey))) };
    throw new Problem("RATE_LIMITED", { limit: name }, { headers, reason, ...(message !== undefined && { message }) });
  }

  return {
    admit(accessKey) {
      if (requests !== null) take(requests, accessKey);
    },
    countCode(accessKey, outcome) {
      if (codes === null) return;
      if (outcome.code === "COUPON_CODE_INVALID") take(codes.wrong, accessKey);
      if (isUnknownCoupon(outcome)) take(codes.unknown, accessKey);
    },
    fields(accessKey) {
      const shown: Limit[] = requests === null ? [] : [requests];
      // Shown only after a wrong code: a till that scans its codes correctly never sees this limit. Both counts have
      // one name, so only the one with less left is shown.
      const [nearest] = Object.values(codes ?? {}).sort((a, b) => a.quotas.left(accessKey) - b.quotas.left(accessKey));
      if (nearest !== undefined && nearest.quotas.left(accessKey) < nearest.burst) shown.push(nearest);
      if (shown.length === 0) return null;
      return {
        "ratelimit-policy": shown.map(({ policy }) => policy).join(", "),
        ratelimit: shown.map((limit) => describe(limit, accessKey)).join(", "),
      };
    },
  };
}

function openRequestLimit(perSecond: number, burst: number): Limit {
  return {
    name: "requests",
    quotas: createBuckets({ perSecond, burst }),
    burst,
    policy: `"requests";q=${burst};w=${Math.ceil(burst / perSecond)}`,
    reason: "too many requests",
  };
}

function openCodeLimit(kind: "wrong" | "unknown", perMinute: number): Limit {
  return {
    name: "wrong_codes",
    quotas: createWindows(perMinute),
    burst: perMinute,
    policy: `"wrong_codes";q=${perMinute};w=60`,
    reason: `too many ${kind} codes`,
    message: "The code is wrong, and too many were wrong before it. Type or scan it again; right codes work as always.",
  };
}

// r: what remains. t: seconds until the next one if none remains, otherwise until nothing counts.
function describe({ name, quotas }: Limit, accessKey: string): string {
  const left = Math.floor(quotas.left(accessKey));
  const seconds = left === 0 ? quotas.secondsToNext(accessKey) : quotas.secondsToFull(accessKey);
  return `"${name}";r=${left};t=${atLeastOne(seconds)}`;
}

const atLeastOne = (seconds: number) => Math.max(1, Math.ceil(seconds));

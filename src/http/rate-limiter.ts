// How much one credential may ask: requests a second, and codes that are not there, so that nobody finds codes by trying.
//
// Who has used up the budget of codes gets no more codes judged: lock, redeem, void and query are refused before anything in
// them is read. A till must still end what it began, so confirm and cancel are judged all the same; what they tell is
// passed on only when it is about a lock of the caller's own. All else would tell whether a code exists.
//
// A refusal here is never recorded: what the database has judged all the same stays final under its request_id.
import type { Reveals } from "./route.ts";
import { createBuckets, type Buckets, type Quota } from "./token-bucket.ts";
import type { Limits } from "../common/config.ts";
import { Problem } from "../common/problem.ts";

export type LimitName = "requests" | "unknown_codes";
export type Limiter = {
  // Counts a request that is signed as it should be, or throws its 429. True: its answer may tell of own locks only.
  admit(accessKey: string, reveals: Reveals): boolean;
  // Counts what is about to be told when it says that a code is unknown, or throws a 429 in its place.
  tell(accessKey: string, reveals: Reveals, isBlind: boolean, told: Told): void;
  // The header fields of an answer, where there is something to say.
  fields(accessKey: string): Record<string, string> | null;
};
// A Problem of ours or an answer of the database. resource: what a NOT_FOUND is about.
export type Told = { code: string | null; resource?: string | null };

type Limit = { name: LimitName; buckets: Buckets; policy: string };

// Error codes of confirm and cancel that do not depend on whether a code exists: the request itself is wrong, or it is
// about the caller's own lock or its own earlier request.
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

export function createLimiter(
  { requestsPerSecond, requestBurst, unknownCodesPerMinute }: Limits,
  onRefused?: (limit: LimitName) => void,
): Limiter {
  const requests =
    requestsPerSecond === null ? null : openLimit("requests", { perSecond: requestsPerSecond, burst: requestBurst });
  const codes =
    unknownCodesPerMinute === null
      ? null
      : openLimit("unknown_codes", { perSecond: unknownCodesPerMinute / 60, burst: unknownCodesPerMinute });

  function refuse({ name, buckets }: Limit, accessKey: string): Problem {
    onRefused?.(name);
    return new Problem(
      "RATE_LIMITED",
      { limit: name },
      { "retry-after": String(atLeastOne(buckets.secondsToNext(accessKey))) },
      new Error(`too many ${name}`),
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
      return reveals === "own lock";
    },
    tell(accessKey, reveals, isBlind, told) {
      if (codes === null) return;
      if (isBlind && !mayTellBlind(told)) throw refuse(codes, accessKey);
      if (!isBlind && reveals !== "nothing" && isUnknownCode(told)) codes.buckets.take(accessKey);
    },
    fields(accessKey) {
      // Of the codes only once one was wrong: a till that reads its codes never learns that there is such a limit.
      const used = [requests, codes].filter(
        (limit) => limit !== null && (limit === requests || limit.buckets.left(accessKey) < unknownCodesPerMinute!),
      ) as Limit[];
      if (used.length === 0) return null;
      return {
        "ratelimit-policy": used.map(({ policy }) => policy).join(", "),
        ratelimit: used.map((limit) => describe(limit, accessKey)).join(", "),
      };
    },
  };
}

function openLimit(name: LimitName, quota: Quota): Limit {
  return {
    name,
    buckets: createBuckets(quota),
    policy: `"${name}";q=${quota.burst};w=${Math.ceil(quota.burst / quota.perSecond)}`,
  };
}

// r: what is left; t: when there is one again, or all of them.
function describe({ name, buckets }: Limit, accessKey: string): string {
  const left = Math.max(0, Math.floor(buckets.left(accessKey)));
  return `"${name}";r=${left};t=${atLeastOne(left === 0 ? buckets.secondsToNext(accessKey) : buckets.secondsToFull(accessKey))}`;
}

const atLeastOne = (seconds: number) => Math.max(1, Math.ceil(seconds));

function isUnknownCode({ code, resource }: Told): boolean {
  return code === "COUPON_CODE_INVALID" || (code === "NOT_FOUND" && resource === "coupon");
}

function mayTellBlind({ code, resource }: Told): boolean {
  return code === null || independentOfCodes.has(code) || (code === "NOT_FOUND" && resource !== "coupon");
}

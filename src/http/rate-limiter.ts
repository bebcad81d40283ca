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
import { Problem, type ProblemCode } from "../common/problem.ts";

export type LimitName = "requests" | "unknown_codes";
export type Limiter = {
  // Counts a request that is signed as it should be, or throws its 429. True: its answer may tell of own locks only.
  admit(accessKey: string, reveals: Reveals): boolean;
  // Counts what is about to be told when it says that a code is unknown, or throws a 429 in its place.
  tell(accessKey: string, reveals: Reveals, isBlind: boolean, told: Told): void;
  // The header fields of an answer, where there is something to say.
  fields(accessKey: string): Record<string, string> | null;
};
// A Problem's code, or an answer of the database.
export type Told = { code: ProblemCode } | { status: number; body: string };

type Limit = { name: LimitName; buckets: Buckets; policy: string };

const aboutOwnLock: ReadonlySet<string> = new Set([
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

// Only refusals are read. Their bodies are ours, and the caller's words stand in them as JSON strings.
function isUnknownCode(told: Told): boolean {
  if ("code" in told) return told.code === "COUPON_CODE_INVALID";
  if (told.status !== 404) return false;
  const { code, details } = JSON.parse(told.body) as { code: string; details: { resource?: string } | null };
  return code === "NOT_FOUND" && details?.resource === "coupon";
}

function mayTellBlind(told: Told): boolean {
  if ("code" in told) return told.code !== "COUPON_CODE_INVALID";
  if (told.status === 200 || told.status === 401 || told.status >= 500) return true;
  const { code, details } = JSON.parse(told.body) as { code: string; details: { resource?: string } | null };
  return aboutOwnLock.has(code) || (code === "NOT_FOUND" && details?.resource !== "coupon");
}

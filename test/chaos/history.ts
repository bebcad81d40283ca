// What was sent, and the answers. A call may be sent many times under its request_id; all its final answers must be the
// same bytes. Times are on the clock of performance.now().
import type { Call } from "./workload.ts";

// endedAt: Infinity while the attempt runs.
export type Attempt = { sentAt: number; endedAt: number; status: number | null; code: string | null; text: string };
// ok and refused are final. unprocessed: the call never reached a decision. unknown: it may have taken effect.
export type Verdict = "ok" | "refused" | "unprocessed" | "unknown";
export type Entry = { call: Call; body: Record<string, unknown>; attempts: Attempt[] };

export type History = {
  entries: Map<string, Entry>;
  attempts: Attempt[];
  // Milliseconds from `since` until calls were served again, or null if they are not yet. Served again means that for a
  // second every call gets a known outcome.
  servedAfter(since: number): number | null;
};

const notFinal = new Set(["REQUEST_IN_PROGRESS", "IDEMPOTENCY_KEY_REUSED", "COUPON_CODE_INVALID", "ROUTE_NOT_FOUND"]);
const steadyMs = 1_000;

export function verdictOf({ status, code }: Attempt): Verdict {
  if (status === 200) return "ok";
  if (code === "REQUEST_IN_PROGRESS" || status === null || status === 429 || status >= 500) return "unknown";
  return [404, 409, 422].includes(status) && !notFinal.has(code ?? "") ? "refused" : "unprocessed";
}

export function finalOf({ attempts }: Entry): Attempt | null {
  return attempts.find((attempt) => ["ok", "refused"].includes(verdictOf(attempt))) ?? null;
}

// An unprocessed retry proves nothing about an earlier attempt that may have taken effect.
export function outcomeOf(entry: Entry): Verdict {
  const final = finalOf(entry);
  if (final !== null) return verdictOf(final);
  return entry.attempts.some((attempt) => verdictOf(attempt) === "unknown") ? "unknown" : "unprocessed";
}

export function createHistory(): History {
  const attempts: Attempt[] = [];
  return {
    entries: new Map(),
    attempts,
    servedAfter(since) {
      const now = performance.now();
      // A call that was sent just now may still be answered.
      const sent = attempts.filter(
        ({ sentAt, endedAt }) => sentAt >= since && (endedAt <= now || sentAt < now - steadyMs),
      );
      const lastBad = sent.reduce(
        (last, attempt) => (verdictOf(attempt) === "unknown" ? Math.max(last, attempt.sentAt) : last),
        -Infinity,
      );
      const first = sent.reduce((least, { sentAt }) => (sentAt > lastBad ? Math.min(least, sentAt) : least), Infinity);
      return now - first >= 2 * steadyMs ? first - since : null;
    },
  };
}

export const suffixOf = (externalId: string): string => externalId.slice(externalId.indexOf("_") + 1);

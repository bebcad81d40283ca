// The samples that the metrics must show after the story, by name with labels: a figure, or the least and the most that
// it may be.
import { globalAgent } from "node:http";
import type { Answered, Window } from "../books.ts";
import { first } from "../books.ts";
import type { Story } from "../story.ts";

export type Sample = number | Window;

const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4];
const groupBuckets = [1, 2, 4, 8, 16, 32, 64];
const zero = { from: 0, to: 0 };

/** `at`: when the metrics were read. */
export function expectMetrics(story: Story, at: Window): Map<string, Sample> {
  const samples = { ...expectAnswers(story), ...expectLoad(story), ...expectWork(story, at), ...expectAttempts(story) };
  return new Map(Object.entries(samples));
}

function expectAnswers({ books }: Story): Record<string, Sample> {
  const samples: Record<string, Sample> = {};
  const { answers } = books;
  const labelsOf = ({ operation, status, code }: Answered) =>
    `{operation="${operation}",status="${status}",code="${code}"}`;
  for (const [labels, some] of Map.groupBy(answers, labelsOf))
    samples[`coupon_http_requests_total${labels}`] = some.length;
  const name = "coupon_http_request_duration_seconds";
  for (const [operation, some] of Map.groupBy(answers, (answer) => answer.operation)) {
    // The service took less time than its client saw.
    for (const le of buckets) {
      const from = some.filter(({ seconds }) => seconds <= le).length;
      samples[`${name}_bucket{le="${le}",operation="${operation}"}`] = { from, to: some.length };
    }
    samples[`${name}_bucket{le="+Inf",operation="${operation}"}`] = some.length;
    samples[`${name}_count{operation="${operation}"}`] = some.length;
    const most = some.reduce((sum, { seconds }) => sum + seconds, 0);
    samples[`${name}_sum{operation="${operation}"}`] = { from: most / 1_000, to: most };
  }
  // The story sends one call after the other. A refused one spends its nonce in a group of its own.
  const grouped = answers.length;
  for (const le of [...groupBuckets, "+Inf"]) samples[`coupon_group_size_calls_bucket{le="${le}"}`] = grouped;
  samples["coupon_group_size_calls_sum"] = grouped;
  samples["coupon_group_size_calls_count"] = grouped;
  const refused = answers.filter(({ code }) => code === "RATE_LIMITED").length;
  for (const limit of ["requests", "unknown_codes", "connections", "open_requests"])
    samples[`coupon_limit_refused_total{limit="${limit}"}`] = limit === "unknown_codes" ? refused : 0;
  return samples;
}

// Nothing is under way when the metrics are read. The client keeps its connections open.
function expectLoad({ service }: Story): Record<string, Sample> {
  const ofService = Object.entries(globalAgent.freeSockets).filter(([name]) =>
    name.includes(new URL(service.url).port),
  );
  const connections = ofService.flatMap(([, sockets]) => sockets).length;
  const samples: Record<string, Sample> = {
    'coupon_database_up{program="serve"}': 1,
    'coupon_database_up{program="work"}': 1,
    coupon_http_connections: connections,
    coupon_http_open_requests: 0,
    coupon_calls_waiting: 0,
  };
  for (const [lane, width] of Object.entries({ quick: 10, lookup: 2, long: 3, patient: 6, bulk: 3 })) {
    samples[`coupon_lane_connections{lane="${lane}"}`] = width;
    samples[`coupon_lane_busy_connections{lane="${lane}"}`] = 0;
    samples[`coupon_lane_waiting_statements{lane="${lane}"}`] = 0;
  }
  return samples;
}

function expectWork({ books, calendar }: Story, at: Window): Record<string, Sample> {
  const { events, deliveries, webhooks, batches, redemptions, statements } = books;
  const since = (windows: Window[]): Window => {
    if (windows.length === 0) return zero;
    const { from, to } = first(windows);
    return { from: at.from - to, to: at.to - from };
  };
  // The last two events were not sequenced.
  const unsequenced = events.slice(-2);
  const waiting = deliveries.filter(({ parkedAt }) => parkedAt === null);
  const isOpen = ({ disabledAt, pausedUntil }: (typeof webhooks)[number]) =>
    disabledAt === null && pausedUntil === null;
  const due = waiting.filter(({ webhook }) => isOpen(webhook));
  const pending = batches.filter(({ status }) => status === "PENDING");
  const unfinished = statements.filter(({ readyAt }) => readyAt === null);
  const expired = redemptions.filter(({ status, stored }) => status === "LAPSED" && stored === "LOCKED");
  // It is noon where the first day ended: twelve hours ago.
  const { noon, startedAt } = calendar;
  const midnight = startedAt - ((startedAt + noon) % 86_400);
  return {
    coupon_feed_waiting_events: unsequenced.length,
    coupon_feed_lag_seconds: since(unsequenced.map(({ recordedAt }) => recordedAt)),
    coupon_delivery_waiting_events: waiting.length,
    coupon_delivery_lag_seconds: since(due.map(({ nextAttemptAt }) => nextAttemptAt)),
    coupon_webhooks_disabled: webhooks.filter(({ disabledAt }) => disabledAt !== null).length,
    coupon_mint_pending_batches: pending.length,
    coupon_mint_pending_coupons: pending.reduce((sum, { total, minted }) => sum + total - minted, 0),
    coupon_mint_lag_seconds: since(pending.map(({ createdAt }) => createdAt)),
    coupon_days_overdue: 2,
    coupon_day_lag_seconds: since([{ from: midnight, to: midnight }]),
    coupon_statements_waiting: unfinished.length,
    coupon_statement_lag_seconds: since(unfinished.map(({ closedAt }) => closedAt)),
    coupon_lock_lag_seconds: since(expired.map(({ expiresAt }) => expiresAt!)),
    ...Object.fromEntries(
      ["events", "locks", "expiry", "mint", "statement", "webhook"].map((kind) => [
        `coupon_stuck_work{work="${kind}"}`,
        0,
      ]),
    ),
  };
}

function expectAttempts({ books }: Story): Record<string, Sample> {
  return Object.fromEntries(
    ["taken", "failed", "parked", "gone"].map((outcome) => [
      `coupon_webhook_attempts_total{outcome="${outcome}"}`,
      books.attempts.filter((attempt) => attempt.outcome === outcome).length,
    ]),
  );
}

/** Samples as they should be, with each one that is within its bounds shown as the bounds. */
export function readSamples(seen: Map<string, number>, expected: Map<string, Sample>): Record<string, Sample> {
  const ours = [...seen].filter(([name]) => name.startsWith("coupon_"));
  return Object.fromEntries(
    ours.map(([name, value]) => {
      const wanted = expected.get(name);
      const isWithin = typeof wanted === "object" && value >= wanted.from && value <= wanted.to;
      return [name, isWithin ? wanted : value];
    }),
  );
}

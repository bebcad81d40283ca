// Events, their deliveries, recorded answers, the audit, and no violated invariant.
import {
  first,
  sameKey,
  uuidOf,
  type Delivery,
  type Request,
  type Row,
  type Webhook,
  type Expected,
} from "../books.ts";
import type { Story } from "../story.ts";

const daySeconds = 86_400;
const real = { test_event: null, test_event_type: null };

export function expectEvents({ books, eventIds, service }: Story): Expected {
  const { events, deliveries, attempts, webhooks } = books;
  const idOf = ({ seq, entry }: (typeof events)[number]) =>
    entry === null ? eventIds[seq - 1]! : sameKey("evt", entry.id);
  return {
    event: events.map((event) => ({
      tenant: event.tenant.id,
      event_seq: String(event.seq),
      event: idOf(event),
      event_type: event.type,
      party: event.party,
      batch: event.batch?.id ?? null,
      coupon: event.coupon?.id ?? null,
      redemption: event.entry?.redemption.id ?? null,
      business_date: event.date,
      occurred_at: event.occurredAt,
      recorded_at: event.recordedAt,
      tenant_id: String(event.tenant.number),
      event_key: uuidOf(idOf(event)),
      coupon_key: event.coupon === null ? null : uuidOf(event.coupon.id),
    })),
    delivery: deliveries.map(({ webhook, event, ...delivery }) => ({
      tenant: webhook.tenant.id,
      party: webhook.party,
      event: idOf(event),
      event_type: event.type,
      status: delivery.parkedAt === null ? "WAITING" : "PARKED",
      attempt_count: String(delivery.attempts),
      next_attempt_at: delivery.nextAttemptAt,
      parked_at: delivery.parkedAt,
      last_error: delivery.lastError,
      recorded_at: event.recordedAt,
    })),
    delivery_attempt: attempts.map(({ webhook, event, ...attempt }, index) => ({
      tenant: webhook.tenant.id,
      party: webhook.party,
      event: idOf(event),
      attempt: String(attempt.attempt),
      http_status: attempt.status === null ? null : String(attempt.status),
      error: attempt.error,
      duration_ms: String(attempt.durationMs),
      attempted_at: attempt.at,
      attempt_id: String(index + 1),
      ...real,
    })),
    webhook_health: webhooks.map((webhook) => showHealth(books, webhook)),
    request: books.requests.map(showRequest),
    audit: books.audits.map(({ tenant, action, target, reason, details, at }, index) => ({
      audit_id: String(index + 1),
      recorded_at: at,
      login: service.address.user!,
      client: "coupon test",
      tenant: tenant.id,
      action,
      target,
      reason,
      details,
    })),
    invariants: [],
    stuck_work: [],
  };
}

const showRequest = (request: Request): Row => ({
  tenant: request.tenant.id,
  caller: request.caller,
  request_id: request.requestId,
  idempotency_key: request.key,
  first_request_id: request.firstRequestId,
  operation: request.operation,
  http_status: String(request.status),
  response: request.response,
  recorded_at: request.at,
});

function showHealth({ deliveries, attempts }: Story["books"], webhook: Webhook): Row {
  const now = Date.now() / 1000;
  const own = deliveries.filter((one) => one.webhook === webhook);
  const waiting = own.filter(({ parkedAt }) => parkedAt === null);
  const tried = attempts.filter((one) => one.webhook === webhook);
  const recent = tried.filter(({ at }) => at.from > now - daySeconds);
  const failure = tried.findLast(({ outcome }) => outcome !== "taken");
  return {
    tenant: webhook.tenant.id,
    party: webhook.party,
    url: webhook.url,
    health: healthOf(webhook, waiting),
    waiting: String(waiting.length),
    failing: String(waiting.filter((one) => one.attempts > 0).length),
    parked: String(own.length - waiting.length),
    oldest_waiting_at: waiting.length === 0 ? null : first(waiting.map(({ event }) => event.recordedAt)),
    disabled_at: webhook.disabledAt,
    paused_until: webhook.pausedUntil,
    rotated_at: webhook.rotatedAt,
    attempts_24h: String(recent.length),
    failures_24h: String(recent.filter(({ outcome }) => outcome !== "taken").length),
    p95_ms_24h: String(percentile(recent.map(({ durationMs }) => durationMs))),
    last_attempt_at: recent.at(-1)!.at,
    last_failure_at: failure?.at ?? null,
    last_error: failure === undefined ? null : (failure.error ?? `HTTP ${failure.status}`),
  };
}

function healthOf({ disabledAt, pausedUntil }: Webhook, waiting: Delivery[]): string {
  if (disabledAt !== null) return "disabled";
  if (pausedUntil !== null) return "paused";
  return waiting.some(({ attempts }) => attempts > 0) ? "failing" : "healthy";
}

// 95 % are at most so high, interpolated between the two neighbours.
function percentile(values: number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const place = 0.95 * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(place)]!, sorted[Math.ceil(place)]!];
  return low + (high - low) * (place - Math.floor(place));
}

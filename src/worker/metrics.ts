// The metrics of the background work. jobs.read_metrics reads the state of the database; this process counts its
// webhook attempts and remembers its last self-check.
import { Counter, Gauge } from "prom-client";
import type { Metrics } from "../server/metrics-server.ts";
import type { ReconnectingDatabase } from "../database/reconnecting.ts";

/** The outcome that jobs.record_deliveries returns for an attempt to deliver an event. */
export type AttemptOutcome = (typeof attemptOutcomes)[number];
const attemptOutcomes = ["taken", "failed", "parked", "gone"] as const;

export type WorkObserver = {
  attempted(outcome: AttemptOutcome): void;
  // The self-check has ended and found these broken invariants.
  checked(broken: { invariant: string; rows: number }[]): void;
};

// By column of jobs.read_metrics.
const databaseMetrics = {
  feed_waiting: [
    "coupon_feed_waiting_events",
    "Committed events that are not in their feed yet. Counted up to 10,000.",
  ],
  feed_lag: ["coupon_feed_lag_seconds", "Age of the oldest committed event that is not in its feed yet."],
  delivery_waiting: [
    "coupon_delivery_waiting_events",
    "Webhook deliveries that are neither accepted nor parked. Counted up to 10,000.",
  ],
  delivery_lag: [
    "coupon_delivery_lag_seconds",
    "How long the oldest due delivery has been due, without paused and disabled webhooks.",
  ],
  webhook_disabled: ["coupon_webhooks_disabled", "Webhooks that are disabled."],
  mint_batches: ["coupon_mint_pending_batches", "Batches that are not minted yet."],
  mint_coupons: ["coupon_mint_pending_coupons", "Coupons that these batches still lack."],
  mint_lag: ["coupon_mint_lag_seconds", "Age of the oldest batch that is not minted yet."],
  day_overdue: ["coupon_days_overdue", "Distributors whose business day is over but not closed."],
  day_lag: ["coupon_day_lag_seconds", "Time since the end of the first such day."],
  statement_waiting: ["coupon_statements_waiting", "Closed days whose statement is not ready."],
  statement_lag: ["coupon_statement_lag_seconds", "Time since the first such day was closed."],
  lock_lag: ["coupon_lock_lag_seconds", "Age of the oldest expired lock that is not yet marked LAPSED."],
} as const;
// The check work_is_known of core.stuck_work.
const kindsOfWork = ["events", "locks", "expiry", "mint", "statement", "webhook"] as const;
type Row = Record<keyof typeof databaseMetrics, number | string>;

export function observeWork(metrics: Metrics, database: ReconnectingDatabase): WorkObserver {
  const registers = [metrics.registry];
  const gauges = Object.entries(databaseMetrics).map(([column, [name, help]]) => ({
    column: column as keyof Row,
    gauge: new Gauge({ name, help, registers }),
  }));
  const columns = Object.keys(databaseMetrics).join(", ");
  const stuck = new Gauge({
    name: "coupon_stuck_work",
    help: "Work that fails because of the rows of one party, by kind. report.stuck_work names the parties.",
    labelNames: ["work"],
    registers,
  });
  metrics.watch({
    program: "work",
    async ask() {
      const [row] = await database.rows<Row>(`select ${columns} from jobs.read_metrics()`);
      const found = await database.rows<{ work: string }>("select work from jobs.list_stuck_work()");
      for (const { column, gauge } of gauges) gauge.set(Number(row![column]));
      for (const work of kindsOfWork) stuck.set({ work }, found.filter((one) => one.work === work).length);
    },
    hide() {
      for (const { gauge } of gauges) gauge.remove();
      stuck.reset();
    },
  });

  const attempts = new Counter({
    name: "coupon_webhook_attempts_total",
    help: "Recorded attempts to deliver an event to a webhook, by outcome.",
    labelNames: ["outcome"],
    registers,
  });
  for (const outcome of attemptOutcomes) attempts.inc({ outcome }, 0);
  const invariants = new Gauge({
    name: "coupon_invariant_broken_rows",
    help: "Rows that broke an invariant at the last self-check of this process.",
    labelNames: ["invariant"],
    registers,
  });
  const broken = new Gauge({
    name: "coupon_invariants_broken",
    help: "Invariants that were broken at the last self-check of this process.",
    registers,
  });
  const checkedAt = new Gauge({
    name: "coupon_invariants_checked_timestamp_seconds",
    help: "When this process finished its last self-check.",
    registers,
  });
  // There is no value before the first check, because a 0 would mean that no invariant is broken.
  for (const gauge of [broken, checkedAt]) gauge.remove();

  return {
    attempted: (outcome) => attempts.inc({ outcome }),
    checked(found) {
      invariants.reset();
      for (const { invariant, rows } of found) invariants.set({ invariant }, rows);
      broken.set(found.length);
      checkedAt.set(Date.now() / 1_000);
    },
  };
}

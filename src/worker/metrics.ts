// What the background shows: figures of the database that one cheap function reads (jobs.read_metrics), and what this process did:
// attempts of webhooks, the last self-check.
import { Counter, Gauge } from "prom-client";
import type { Metrics } from "../common/metrics-server.ts";
import type { SteadyDatabase } from "../database/reconnecting.ts";

/** What jobs.record_deliveries makes of an attempt to deliver an event to a webhook. */
export type AttemptOutcome = (typeof attemptOutcomes)[number];
const attemptOutcomes = ["taken", "failed", "parked", "gone"] as const;

export type WorkObserver = {
  attempted(outcome: AttemptOutcome): void;
  // The self-check has ended: laws that are broken, and in how many rows.
  checked(broken: { law: string; rows: number }[]): void;
};

// By the column that jobs.read_metrics gives.
const figures = {
  feed_waiting: [
    "coupon_feed_waiting_events",
    "Committed events that are not in their feed yet; at most 10,000 are counted.",
  ],
  feed_lag: ["coupon_feed_lag_seconds", "Age of the oldest of these."],
  delivery_waiting: [
    "coupon_delivery_waiting_events",
    "Deliveries to webhooks that are not taken and not parked; at most 10,000 are counted.",
  ],
  delivery_lag: [
    "coupon_delivery_lag_seconds",
    "For how long the oldest delivery has been due to a webhook that is neither paused nor disabled.",
  ],
  webhook_disabled: ["coupon_webhooks_disabled", "Webhooks that are switched off."],
  mint_batches: ["coupon_mint_pending_batches", "Batches that are not minted yet."],
  mint_coupons: ["coupon_mint_pending_coupons", "Coupons of these that are still to be minted."],
  mint_lag: ["coupon_mint_lag_seconds", "Age of the oldest of these batches."],
  day_overdue: ["coupon_days_overdue", "Distributors whose business day is over and not closed."],
  day_lag: ["coupon_day_lag_seconds", "Since when the first of these days is over."],
  statement_waiting: ["coupon_statements_waiting", "Closed days whose statement is not ready."],
  statement_lag: ["coupon_statement_lag_seconds", "Since when the first of these days is closed."],
  lock_lag: ["coupon_lock_lag_seconds", "For how long the oldest lock past its end has not been written as lapsed."],
} as const;
type Row = Record<keyof typeof figures, number | string>;

export function observeWork(metrics: Metrics, database: SteadyDatabase): WorkObserver {
  const registers = [metrics.registry];
  const gauges = Object.entries(figures).map(([column, [name, help]]) => ({
    column: column as keyof Row,
    gauge: new Gauge({ name, help, registers }),
  }));
  const columns = Object.keys(figures).join(", ");
  metrics.watch({
    program: "work",
    async ask() {
      const [row] = await database.rows<Row>(`select ${columns} from jobs.read_metrics()`);
      for (const { column, gauge } of gauges) gauge.set(Number(row![column]));
    },
    hide() {
      for (const { gauge } of gauges) gauge.remove();
    },
  });

  const attempts = new Counter({
    name: "coupon_webhook_attempts_total",
    help: "Attempts to deliver an event, by what came of it.",
    labelNames: ["outcome"],
    registers,
  });
  for (const outcome of attemptOutcomes) attempts.inc({ outcome }, 0);
  const laws = new Gauge({
    name: "coupon_law_broken_rows",
    help: "Rows in which a law of the system was broken at the last self-check of this process.",
    labelNames: ["law"],
    registers,
  });
  const broken = new Gauge({
    name: "coupon_laws_broken",
    help: "Laws that were broken at the last self-check of this process.",
    registers,
  });
  const checkedAt = new Gauge({
    name: "coupon_laws_checked_timestamp_seconds",
    help: "When this process ended its last self-check.",
    registers,
  });
  // Until the first check there is nothing to say, and 0 would be saying that all is well.
  for (const gauge of [broken, checkedAt]) gauge.remove();

  return {
    attempted: (outcome) => attempts.inc({ outcome }),
    checked(found) {
      laws.reset();
      for (const { law, rows } of found) laws.set({ law }, rows);
      broken.set(found.length);
      checkedAt.set(Date.now() / 1_000);
    },
  };
}

// The metrics of the background work. jobs.read_metrics reads the state of the database; rules.list_invariants
// the last self-check. This process counts its webhook attempts.
import type { Metrics } from "../server/metrics-server.ts";
import type { ReconnectingDatabase } from "../database/reconnecting.ts";

/** The outcome that jobs.record_deliveries returns for an attempt to deliver an event. */
export type AttemptOutcome = (typeof attemptOutcomes)[number];
const attemptOutcomes = ["taken", "failed", "parked", "gone"] as const;

export type WorkObserver = {
  attempted(outcome: AttemptOutcome): void;
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
  recall_batches: ["coupon_recall_running_batches", "Recalled batches that still have unused or LOCKED coupons."],
  recall_coupons: ["coupon_recall_pending_coupons", "Coupons of these batches that the recall has not reached."],
  recall_lag: ["coupon_recall_lag_seconds", "Age of the oldest recall that has not reached all coupons."],
  day_overdue: ["coupon_distributors_overdue", "Distributors whose business day is over but not closed."],
  day_lag: ["coupon_day_lag_seconds", "Time since the end of the first such day."],
  statement_waiting: ["coupon_statements_waiting", "Closed days whose statement is not ready."],
  statement_lag: ["coupon_statement_lag_seconds", "Time since the first such day was closed."],
  lock_lag: ["coupon_lock_lag_seconds", "Age of the oldest expired lock that is not yet marked LAPSED."],
} as const;
// The check work_is_known of core.stuck_work.
const kindsOfWork = ["events", "locks", "expiry", "mint", "recall", "statement", "webhook"] as const;
type Row = Record<keyof typeof databaseMetrics, number | string>;

export function observeWork(metrics: Metrics, database: ReconnectingDatabase): WorkObserver {
  const registers = [metrics.registry];
  const { Counter, Gauge } = metrics.kinds;
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
  const invariants = observeInvariants(metrics, database);
  metrics.watch({
    program: "work",
    async ask() {
      await invariants.ask();
      const [row] = await database.rows<Row>(`select ${columns} from jobs.read_metrics()`);
      const found = await database.rows<{ work: string }>("select work from jobs.list_stuck_work()");
      for (const { column, gauge } of gauges) gauge.set(Number(row![column]));
      for (const work of kindsOfWork) stuck.set({ work }, found.filter((one) => one.work === work).length);
    },
    hide() {
      for (const { gauge } of gauges) gauge.remove();
      stuck.reset();
      invariants.hide();
    },
  });

  const attempts = new Counter({
    name: "coupon_webhook_attempts_total",
    help: "Recorded attempts to deliver an event to a webhook, by outcome.",
    labelNames: ["outcome"],
    registers,
  });
  for (const outcome of attemptOutcomes) attempts.inc({ outcome }, 0);
  return { attempted: (outcome) => attempts.inc({ outcome }) };
}

// The last check of each invariant, which the database keeps. The time is absent until each was checked once: before
// that, it is not known whether all hold.
function observeInvariants({ registry, kinds: { Gauge } }: Metrics, database: ReconnectingDatabase) {
  const registers = [registry];
  const rows = new Gauge({
    name: "coupon_invariant_broken_rows",
    help: "Rows that broke an invariant when it was last checked.",
    labelNames: ["invariant"],
    registers,
  });
  const broken = new Gauge({
    name: "coupon_invariants_broken",
    help: "Invariants that were broken when they were last checked.",
    registers,
  });
  const checkedAt = new Gauge({
    name: "coupon_invariants_checked_timestamp_seconds",
    help: "When the invariant whose check is oldest was last checked.",
    registers,
  });
  return {
    async ask() {
      const found = await database.rows<{ invariant: string; rows: number | null; at: number | null }>(
        `select invariant, broken_rows::float8 as rows, extract(epoch from checked_at)::float8 as at
         from rules.list_invariants()`,
      );
      this.hide();
      const violated = found.filter((one) => one.rows !== null && one.rows > 0);
      for (const { invariant, rows: count } of violated) rows.set({ invariant }, count!);
      const times = found.map(({ at }) => at).filter((at) => at !== null);
      if (times.length > 0) broken.set(violated.length);
      if (times.length === found.length) checkedAt.set(Math.min(...times));
    },
    hide() {
      rows.reset();
      for (const gauge of [broken, checkedAt]) gauge.remove();
    },
  };
}

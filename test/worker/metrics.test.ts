// The metrics of the worker while nothing waits, what they read, and the last self-check. test/owners compares each
// figure of a database where things wait.
import t from "tap";
import { createLog } from "../../src/common/log.ts";
import { openSession } from "../../src/database/connect.ts";
import { createChecker } from "../../src/worker/tasks/check.ts";
import { createSequencer } from "../../src/worker/tasks/sequence.ts";
import { observeWork } from "../../src/worker/metrics.ts";
import { postOk } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { document } from "../support/tenants.ts";
import { openMetrics, openMetricsDatabase, scrape } from "../support/scrape.ts";
import { sequenceEvents } from "../support/sequence-events.ts";
import { newRequestId, startService } from "../support/service.ts";

const log = createLog("silent");
const merchant = "mch_a";

t.test("While nothing waits, the worker's metrics are 0, also beside a live lock", async (t) => {
  const service = await startService(t);
  const metrics = await openMetrics(t);
  const database = openMetricsDatabase(t, service.address, "coupon_worker");
  observeWork(metrics, database);
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_fixed", 1);
  await postOk(a, "/v1/coupons/lock", { request_id: newRequestId(), coupon: codes[0], merchant });
  await sequenceEvents(database);
  const seen = Object.fromEntries(await scrape(metrics));
  for (const metric of [
    "coupon_feed_waiting_events",
    "coupon_feed_lag_seconds",
    "coupon_delivery_waiting_events",
    "coupon_delivery_lag_seconds",
    "coupon_webhooks_disabled",
    "coupon_mint_pending_batches",
    "coupon_mint_pending_coupons",
    "coupon_mint_lag_seconds",
    "coupon_days_overdue",
    "coupon_day_lag_seconds",
    "coupon_statements_waiting",
    "coupon_statement_lag_seconds",
    "coupon_lock_lag_seconds",
    ...["taken", "failed", "parked", "gone"].map((outcome) => `coupon_webhook_attempts_total{outcome="${outcome}"}`),
  ])
    t.equal(seen[metric], 0, metric);
});

t.test("Reading the metrics reads few rows, however large the tables are", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_fixed", 300);
  await Promise.all(
    codes.map((coupon) => a.post("/v1/coupons/redeem", { request_id: newRequestId(), coupon, merchant })),
  );
  const session = openSession(service.address, { name: "coupon test", role: "coupon_worker" });
  t.teardown(() => session.end());
  await createSequencer({ database: session, stopping: new AbortController().signal }).sequence();
  const countReads = async () => {
    const [read] = await session.rows<{ rows: number }>(
      `select sum(s.seq_tup_read + s.idx_tup_fetch)::int as rows
       from pg_stat_xact_user_tables s where s.schemaname = 'core'`,
    );
    return read!.rows;
  };
  await session.run("begin");
  const before = await countReads();
  await session.rows("select * from jobs.read_metrics()");
  const after = await countReads();
  await session.run("rollback");
  t.ok(after - before < 20, `${after - before} rows`);
});

t.test(
  "The result of the last self-check is shown, nothing of earlier ones, and nothing before the first",
  async (t) => {
    const service = await startService(t, document, { mayBreakInvariants: true });
    const metrics = await openMetrics(t);
    const database = openMetricsDatabase(t, service.address, "coupon_worker");
    const { checked } = observeWork(metrics, database);
    t.notOk([...(await scrape(metrics)).keys()].some((name) => name.startsWith("coupon_invariant")));
    const check = createChecker({
      address: service.address,
      role: "coupon_worker",
      log,
      stopping: new AbortController().signal,
      onChecked: checked,
    });
    await check();
    const seen = await scrape(metrics);
    t.equal(seen.get("coupon_invariants_broken"), 0);
    t.ok(Math.abs(seen.get("coupon_invariants_checked_timestamp_seconds")! - Date.now() / 1_000) < 10);
    checked([{ invariant: "each day adds up", rows: 3 }]);
    fits(t, Object.fromEntries(await scrape(metrics)), {
      coupon_invariants_broken: 1,
      'coupon_invariant_broken_rows{invariant="each day adds up"}': 3,
    });
    checked([]);
    const repaired = await scrape(metrics);
    t.equal(repaired.get("coupon_invariants_broken"), 0);
    t.notOk([...repaired.keys()].some((name) => name.startsWith("coupon_invariant_broken_rows")));
  },
);

// The worker's metrics: what waits in the database and for how long, and the last self-check.
import t from "tap";
import { createLog } from "../../src/common/log.ts";
import { openSession } from "../../src/database/connect.ts";
import { createChecker } from "../../src/worker/tasks/check.ts";
import { createSequencer } from "../../src/worker/tasks/sequence.ts";
import { observeWork } from "../../src/worker/metrics.ts";
import { untilLocksExpire } from "../support/arrange.ts";
import { document } from "../support/provisioning.ts";
import { openMetrics, openMetricsDatabase, scrape } from "../support/scrape.ts";
import { newRequestId, startService } from "../support/service.ts";
import { template } from "../support/tenant-document.ts";

const log = createLog("silent");
const merchant = "mch_a";

t.test("The worker's metrics show what waits in the database, and for how long", async (t) => {
  const service = await startService(t, document, { mayBreakInvariants: true });
  const metrics = await openMetrics(t);
  const a = service.as("ak_a");
  const database = openMetricsDatabase(t, service.address, "coupon_worker");
  observeWork(metrics, database);
  t.match(Object.fromEntries(await scrape(metrics)), {
    'coupon_database_up{program="work"}': 1,
    coupon_feed_waiting_events: 0,
    coupon_feed_lag_seconds: 0,
    coupon_delivery_waiting_events: 0,
    coupon_delivery_lag_seconds: 0,
    coupon_mint_pending_batches: 0,
    coupon_days_overdue: 0,
    coupon_statements_waiting: 0,
    coupon_lock_lag_seconds: 0,
    coupon_webhooks_disabled: 0,
  });
  const webhook = { url: "https://hook.example/" };
  const brief = template("tpl_short", "pty_a", { lock_ttl_seconds: 1 });
  await service.apply({
    tenants: [
      { id: "ten_a", name: "A", variant: "A", parties: [{ id: "pty_a", name: "a", webhook }], templates: [brief] },
    ],
  });
  const { codes } = await service.makeBatch(a, "tpl_fixed", 5);
  await createSequencer({ database, stopping: new AbortController().signal }).sequence();
  for (const coupon of codes.slice(0, 2))
    await a.post("/v1/coupons/redeem", { request_id: newRequestId(), coupon, merchant });
  const [short] = (await service.makeBatch(a, "tpl_short", 1)).codes;
  await a.post("/v1/coupons/lock", { request_id: newRequestId(), coupon: short, merchant });
  await untilLocksExpire(service);
  await a.post("/v1/batches", { request_id: newRequestId(), template: "tpl_fixed", total_count: 1_000 });
  // Books that no worker has closed for days.
  await service.owner.rows(
    `insert into core.ledger_book (tenant_id, party_id, open_on)
     select p.tenant_id, p.party_id, current_date - 3 from core.party p where p.external_id = 'pty_other'`,
  );
  const [row] = await service.owner.rows<Record<string, number>>("select * from jobs.read_metrics()");
  t.match(row, {
    feed_waiting: 4,
    mint_batches: 1,
    mint_coupons: "1000",
    day_overdue: 1,
    statement_waiting: 0,
    webhook_disabled: 0,
  });
  t.ok(row!["feed_lag"]! > 0 && row!["feed_lag"]! < 60, `the oldest event has waited for ${row!["feed_lag"]} s`);
  t.ok(row!["lock_lag"]! > 0 && row!["lock_lag"]! < 60);
  t.ok(row!["mint_lag"]! > 0 && row!["mint_lag"]! < 60);
  t.ok(row!["day_lag"]! > 86_400 && row!["day_lag"]! < 4 * 86_400, "counted from the end of the open day");
  t.ok(row!["delivery_waiting"]! > 0 && row!["delivery_lag"]! > 0, "batch.generated and allocation.completed");
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

t.test("The result of the last self-check is shown, and nothing before the first one", async (t) => {
  const service = await startService(t, document, { mayBreakInvariants: true });
  const metrics = await openMetrics(t);
  const database = openMetricsDatabase(t, service.address, "coupon_worker");
  const { checked } = observeWork(metrics, database);
  t.notOk([...(await scrape(metrics)).keys()].some((name) => name.startsWith("coupon_law")));
  const check = createChecker({
    address: service.address,
    role: "coupon_worker",
    log,
    stopping: new AbortController().signal,
    onChecked: checked,
  });
  await check();
  const seen = await scrape(metrics);
  t.equal(seen.get("coupon_laws_broken"), 0);
  t.ok(Math.abs(seen.get("coupon_laws_checked_timestamp_seconds")! - Date.now() / 1_000) < 10);
  checked([{ law: "each day adds up", rows: 3 }]);
  t.match(Object.fromEntries(await scrape(metrics)), {
    coupon_laws_broken: 1,
    'coupon_law_broken_rows{law="each day adds up"}': 3,
  });
});

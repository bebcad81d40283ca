// The metrics of the worker while nothing waits, what they read, and the last self-check. test/owners compares each
// figure of a database where things wait.
import t from "tap";
import { createLog } from "../../src/common/log.ts";
import { openSession } from "../../src/database/connect.ts";
import { createChecker } from "../../src/worker/tasks/check.ts";
import { observeWork } from "../../src/worker/metrics.ts";
import { alerts, findFiring } from "../support/alerts.ts";
import { readCounts } from "../support/count-reads.ts";
import { fits } from "../support/fits.ts";
import { scenario } from "../support/scenario.ts";
import { openMetrics, openMetricsDatabase, scrape } from "../support/scrape.ts";

t.test("while nothing waits, the worker's metrics are 0, also beside a live lock", async (t) => {
  const world = await scenario(t);
  const metrics = await openMetrics(t);
  observeWork(metrics, openMetricsDatabase(t, world.address, "coupon_worker"));
  await world.a.makeCoupons(1, "LOCKED by this lock");
  await world.steps.sequence();
  const isWaiting = /^coupon_(feed|delivery|webhook|mint|day|statement|lock)/;
  const figures = [...(await scrape(metrics))].filter(([name]) => isWaiting.test(name));
  t.strictSame([figures.length, new Set(figures.map(([, value]) => value))], [17, new Set([0])]);
});

t.test("reading the metrics reads few rows, however large the tables are", async (t) => {
  const world = await scenario(t);
  await world.a.makeCoupons(300, "REDEEMED");
  await world.steps.sequence();
  const session = openSession(world.address, { name: "coupon test", role: "coupon_worker" });
  t.teardown(() => session.end());
  await session.run("begin");
  const before = await readCounts(session);
  await session.rows("select * from jobs.read_metrics()");
  const after = await readCounts(session);
  await session.run("rollback");
  t.ok(after.rows - before.rows < 20, `${after.rows - before.rows} rows`);
});

t.test("the last self-check is in the database: shown by every worker, also one that has just started", async (t) => {
  const { address, owner, openPsql } = await scenario(t, { mayBreakInvariants: true });
  const metrics = await openMetrics(t);
  observeWork(metrics, openMetricsDatabase(t, address, "coupon_worker"));
  const asked = "coupon_invariants_checked_timestamp_seconds";
  t.equal((await scrape(metrics)).get(asked), undefined, "no check has ended");
  t.strictSame(findFiring(await scrape(metrics)), [`absent(${asked})`]);
  const parts = { address, role: "coupon_worker", log: createLog("silent"), stopping: new AbortController().signal };
  const check = createChecker(parts);
  /** As a worker that has started after the check. */
  const seen = async () => {
    const others = await openMetrics(t);
    observeWork(others, openMetricsDatabase(t, address, "coupon_worker"));
    return scrape(others);
  };
  await check({ onlyNew: true });
  const healthy = await seen();
  t.equal(healthy.get("coupon_invariants_broken"), 0);
  t.ok(Math.abs(healthy.get(asked)! - Date.now() / 1_000) < 60);
  t.strictSame(findFiring(healthy), []);
  t.strictSame(findFiring(healthy, Date.now() / 1_000 + 172_900), [`time() - max(${asked}) > 2*86400`]);

  const psql = await openPsql({ triggers: false });
  await psql.run("update core.feed set last_position = last_position + 3");
  await psql.run(
    "insert into core.feed (tenant_id, party_id, last_position) select tenant_id, 0, 3 from core.tenant limit 1",
  );
  await check({ onlyNew: true });
  t.equal((await seen()).get("coupon_invariants_broken"), 0, "none is new");
  await check();
  const broken = await seen();
  fits(t, Object.fromEntries(broken), {
    'coupon_invariant_broken_rows{invariant="feed counts its events"}': 1,
  });
  t.strictSame(findFiring(broken), ["max(coupon_invariants_broken) > 0"]);

  await psql.run("delete from core.feed");
  await owner.rows("update core.invariant_check set checked_at = '2026-01-01'");
  await check();
  const repaired = await seen();
  t.equal(repaired.get("coupon_invariants_broken"), 0);
  t.notOk([...repaired.keys()].some((name) => name.startsWith("coupon_invariant_broken_rows")));
});

t.test("each invariant is a statement of its own, which reads only the tables that it is about", async (t) => {
  const world = await scenario(t);
  await world.a.makeCoupons(300, "REDEEMED");
  const session = openSession(world.address, { name: "coupon test", role: "coupon_worker" });
  t.teardown(() => session.end());
  await session.run("begin");
  const check = (invariant: string) => session.rows("select from rules.check_invariant($1)", [invariant]);
  const reads = async (invariant: string) => {
    const before = await readCounts(session);
    await check(invariant);
    return (await readCounts(session)).rows - before.rows;
  };
  await reads("delivery is parked after 10 attempts");
  const few = await reads("delivery is parked after 10 attempts");
  t.ok(few < 100, `${few} rows`);
  t.ok((await reads("redemption has its ledger entries")) >= 300);
  await t.rejects(check("no such invariant"), { code: "CP404" });
});

const faults: [alert: string, made: string, undone: string][] = [
  [
    "max(coupon_stuck_work) > 0",
    "select rules.note_stuck_work('mint', tenant_id, party_id, 'bat_1', 'why') from core.party limit 1",
    "delete from core.stuck_work",
  ],
  [
    "max(coupon_feed_lag_seconds) > 60",
    `insert into core.event (tenant_id, event_id, event_type, party_id, business_date, occurred_at, recorded_at)
     select tenant_id, gen_random_uuid(), 'reconciliation.ready', party_id, '2026-01-01', '2026-01-02', '2026-01-02'
     from core.party limit 1`,
    "delete from core.event",
  ],
  [
    "max(coupon_webhooks_disabled) > 0",
    `insert into core.webhook (tenant_id, party_id, url, sealed_secret, secret_hash, disabled_at)
     select tenant_id, party_id, 'https://x.example/', '1', '1', now() from core.party limit 1`,
    "delete from core.webhook",
  ],
  [
    "max(coupon_delivery_lag_seconds) > 600",
    `insert into core.webhook (tenant_id, party_id, url, sealed_secret, secret_hash)
     select tenant_id, party_id, 'https://x.example/', '1', '1' from core.party limit 1;
     insert into core.delivery (tenant_id, party_id, event_id, event_seq, next_attempt_at)
     select tenant_id, party_id, gen_random_uuid(), 0, now() - interval '11 minutes' from core.webhook`,
    "delete from core.delivery; delete from core.webhook",
  ],
  [
    "max(coupon_day_lag_seconds) > 600",
    `insert into core.ledger_book (tenant_id, party_id, open_on)
     select tenant_id, party_id, '2026-01-01' from core.party limit 1`,
    "delete from core.ledger_book",
  ],
  [
    "max(coupon_statement_lag_seconds) > 600",
    `insert into core.statement (tenant_id, distributor_id, business_date, entry_count, is_one_of_several, closed_at)
     select tenant_id, party_id, '2026-01-01', 0, false, '2026-01-02' from core.party limit 1`,
    "delete from core.statement",
  ],
];

t.test("each alert of docs/operate.md fires when its fault is there, and no other", async (t) => {
  const world = await scenario(t, { mayBreakInvariants: true });
  const { address } = world;
  await createChecker({
    address,
    role: "coupon_worker",
    log: createLog("silent"),
    stopping: new AbortController().signal,
  })();
  const firing = async () => {
    const metrics = await openMetrics(t);
    observeWork(metrics, openMetricsDatabase(t, address, "coupon_worker"));
    return findFiring(await scrape(metrics));
  };
  t.strictSame(await firing(), []);
  const psql = await world.openPsql({ triggers: false });
  for (const [alert, made, undone] of faults) {
    await psql.run(made);
    t.strictSame(await firing(), [alert], alert);
    await psql.run(undone);
  }
  await world.a.maker.ok.createBatch("tpl_fixed", 3);
  await psql.run("update core.batch set created_at = now() - interval '2 hours'");
  t.strictSame(await firing(), ["max(coupon_mint_lag_seconds) > 3600"]);
  const recalled = "(suspended_at, recalled_at, recall_caller_id, minted_count) = (now(), created_at, 0, 1)";
  await psql.run(`update core.batch set ${recalled}`);
  t.strictSame(await firing(), ["max(coupon_recall_lag_seconds) > 3600"]);
  await psql.run("update core.batch set recalled_through = 1");
  t.strictSame(await firing(), [], "it only waits for locks");
  await psql.run("delete from core.batch");
  const untested = ["absent(", "time()", "coupon_invariants_broken", "coupon_database_"];
  const rest = alerts.filter((one) => !faults.some(([alert]) => alert === one) && !/(mint|recall)_lag/.test(one));
  for (const one of rest)
    t.ok(
      untested.some((part) => one.includes(part)),
      `${one} is tested above or by full-disk.test.ts`,
    );
});

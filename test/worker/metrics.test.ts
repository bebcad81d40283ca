// The metrics of the worker while nothing waits, what they read, and the last self-check. test/owners compares each
// figure of a database where things wait.
import t from "tap";
import { createLog } from "../../src/common/log.ts";
import { readConfig } from "../../src/config/config.ts";
import { openSession } from "../../src/database/connect.ts";
import { createChecker } from "../../src/worker/tasks/check.ts";
import { observeWork } from "../../src/worker/metrics.ts";
import { work } from "../../src/work.ts";
import { alerts, findFiring } from "../support/alerts.ts";
import { faults } from "../support/faults.ts";
import { readCounts } from "../support/count-reads.ts";
import { fits } from "../support/fits.ts";
import { startReceiver, status } from "../support/receiver.ts";
import { scenario } from "../support/scenario.ts";
import { openMetrics, openMetricsDatabase, scrape } from "../support/scrape.ts";
import { subscribe } from "../support/subscribers.ts";
import { waitUntil } from "../support/wait-until.ts";
import { loopbackOnly } from "../support/worker-steps.ts";

t.test("while nothing waits, the worker's metrics are 0, also beside a live lock", async (t) => {
  const world = await scenario(t);
  const metrics = await openMetrics(t);
  observeWork(metrics, openMetricsDatabase(t, world.address, "coupon_worker"));
  await world.a.makeCoupons(1, "LOCKED by this lock");
  await world.steps.sequence();
  const isWaiting = /^coupon_(feed|delivery|webhook|mint|day|distributors|statement|lock)/;
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
  await owner.rows("delete from core.invariant_check");
  const metrics = await openMetrics(t);
  observeWork(metrics, openMetricsDatabase(t, address, "coupon_worker"));
  const asked = "coupon_invariants_checked_timestamp_seconds";
  t.equal((await scrape(metrics)).get(asked), undefined, "no check has ended");
  t.strictSame(findFiring(await scrape(metrics)), ["CouponInvariantsNeverChecked"]);
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
  t.strictSame(findFiring(healthy, { now: Date.now() / 1_000 + 172_900 }), ["CouponInvariantsNotChecked"]);

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
  t.strictSame(findFiring(broken), ["CouponInvariantsBroken"]);

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
  await world.a.maker.ok.createBatch("tpl_fixed", 3);
  for (const [alert, { made, undone }] of Object.entries(faults)) {
    await psql.run(made);
    t.strictSame(await firing(), [alert], alert);
    await psql.run(undone);
  }
  await psql.run(faults.CouponRecallLag.made);
  await psql.run("update core.batch set recalled_through = 1");
  t.strictSame(await firing(), [], "it only waits for locks");
  await psql.run("delete from core.batch");
});

t.test("the last attempt of a delivery raises an alert", async (t) => {
  const world = await scenario(t);
  const receiver = await startReceiver(t, status(500));
  const fixture = await subscribe(t, [receiver.url], { on: world, supply: 1 });
  const metrics = await openMetrics(t);
  const config = readConfig({ WEBHOOK_ALLOW: loopbackOnly.join() });
  const { address, keys, owner } = world;
  const worker = await work({ address, keys, config, log: createLog("silent"), metrics });
  t.teardown(() => worker.stop());
  const before = await scrape(metrics);
  await fixture.happen("pty_s1", 1);
  await waitUntil("the first attempt", () => receiver.received.length > 0);
  t.notOk(findFiring(await scrape(metrics), { before }).includes("CouponWebhookParked"), "an attempt failed");
  await waitUntil("the last attempt", async () => {
    await owner.rows("update core.delivery set attempt_count = 9, next_attempt_at = now() where parked_at is null");
    await owner.rows("update core.webhook set paused_until = null");
    return findFiring(await scrape(metrics), { before }).includes("CouponWebhookParked");
  });
});

t.test("every alert of docs/operate.md is raised by a test", (t) => {
  const elsewhere = {
    "test/http/metrics.test.ts": ["CouponDatabaseDown", "CouponNoWorker", "CouponServerErrors"],
    "test/operations/full-disk.test.ts": ["CouponDiskFull"],
    "test/operations/prometheus.test.ts": ["CouponServiceDown"],
  };
  const here = ["Broken", "NotChecked", "NeverChecked"].map((end) => `CouponInvariants${end}`);
  const raised = [...Object.keys(faults), "CouponWebhookParked", ...here, ...Object.values(elsewhere).flat()];
  t.strictSame(raised.toSorted(), alerts.map(({ name }) => name).toSorted());
  t.end();
});

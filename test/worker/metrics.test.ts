// The metrics of the worker while nothing waits, what they read, and the last self-check. test/owners compares each
// figure of a database where things wait.
import t from "tap";
import { createLog } from "../../src/common/log.ts";
import { openSession } from "../../src/database/connect.ts";
import { createChecker } from "../../src/worker/tasks/check.ts";
import { observeWork } from "../../src/worker/metrics.ts";
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

t.test("the last self-check is shown, nothing of earlier ones, and nothing before the first", async (t) => {
  const { address } = await scenario(t);
  const metrics = await openMetrics(t);
  const { checked } = observeWork(metrics, openMetricsDatabase(t, address, "coupon_worker"));
  t.notOk([...(await scrape(metrics)).keys()].some((name) => name.startsWith("coupon_invariant")));
  const stopping = new AbortController().signal;
  const log = createLog("silent");
  await createChecker({ address, role: "coupon_worker", log, stopping, onChecked: checked })();
  const seen = await scrape(metrics);
  t.equal(seen.get("coupon_invariants_broken"), 0);
  t.ok(Math.abs(seen.get("coupon_invariants_checked_timestamp_seconds")! - Date.now() / 1_000) < 60);
  checked([{ invariant: "each day adds up", rows: 3 }]);
  fits(t, Object.fromEntries(await scrape(metrics)), {
    coupon_invariants_broken: 1,
    'coupon_invariant_broken_rows{invariant="each day adds up"}': 3,
  });
  checked([]);
  const repaired = await scrape(metrics);
  t.equal(repaired.get("coupon_invariants_broken"), 0);
  t.notOk([...repaired.keys()].some((name) => name.startsWith("coupon_invariant_broken_rows")));
});

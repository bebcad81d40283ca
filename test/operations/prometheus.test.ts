// Each alert of docs/monitoring fires in a real Prometheus, which scrapes a real serve and a real work, when its fault
// is made. test/worker/metrics.test.ts also shows that no other alert fires, and needs no Prometheus.
import t, { type Test } from "tap";
import { createLog } from "../../src/common/log.ts";
import { createChecker } from "../../src/worker/tasks/check.ts";
import { alerts } from "../support/alerts.ts";
import { createClient } from "../support/client.ts";
import { faults } from "../support/faults.ts";
import { lacksPrometheus, startPrometheus } from "../support/prometheus.ts";
import { environmentOf, launch } from "../support/program.ts";
import { startProxy } from "../support/proxy.ts";
import { startReceiver, status } from "../support/receiver.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { subscribe } from "../support/subscribers.ts";
import { secretOf } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";

const metricsUrl = /"metrics_url":"(\S+?)"/;

async function startSite(t: Test, world: Scenario) {
  const proxy = await startProxy(world.address);
  t.teardown(() => proxy.stop());
  const address = { ...world.address, host: "127.0.0.1", port: proxy.port };
  const env = { ...environmentOf({ ...world, address }), METRICS_PORT: "0" };
  const [serve, work] = [launch(t, "serve", { env }), launch(t, "work", { env })];
  const [, url = ""] = await serve.untilPrinted(/"url":"(\S+?)"/);
  const urls = [(await serve.untilPrinted(metricsUrl))[1]!, (await work.untilPrinted(metricsUrl))[1]!];
  const prometheus = await startPrometheus(t, urls);
  const till = createClient({ url, accessKey: "ak_a", secret: secretOf("ak_a") });
  return { proxy, work, till, prometheus };
}

t.test("each alert fires when its fault is made", { skip: lacksPrometheus, timeout: 280_000 }, async (t) => {
  const world = await scenario(t, { mayBreakInvariants: true });
  const { owner } = world;
  const [coupon] = await world.a.makeCoupons(1);
  const receiver = await startReceiver(t, status(500));
  const fixture = await subscribe(t, [receiver.url], { on: world, supply: 1 });
  const { proxy, work, till, prometheus } = await startSite(t, world);
  await waitUntil("no alert", async () => (await prometheus.listFiring()).length === 0);

  const raised: string[] = [];
  /** Makes the fault, again and again if the alert is about a rate, until the alerts fire. */
  const raise = async (names: string[], make: () => Promise<unknown>, { isRate = false } = {}) => {
    const before = await prometheus.listFiring();
    t.notOk(before.some((name) => names.includes(name)));
    await make();
    await waitUntil(`the alerts ${names.join()}`, async () => {
      const firing = await prometheus.listFiring();
      return names.every((name) => firing.includes(name)) || (isRate && (await make(), false));
    });
    raised.push(...names);
  };

  await fixture.happen("pty_s1", 1);
  const becomeLast = `
    with paused as (update core.webhook set paused_until = null)
    update core.delivery set attempt_count = 9, next_attempt_at = now() where parked_at is null`;
  await raise(["CouponWebhookParked"], () => owner.rows(becomeLast), { isRate: true });

  // A worker that may only read its metrics repairs nothing.
  await owner.rows("revoke execute on all functions in schema jobs from coupon_worker");
  await owner.rows("grant execute on function jobs.read_metrics(), jobs.list_stuck_work() to coupon_worker");
  const psql = await world.openPsql({ triggers: false });
  await world.a.maker.ok.createBatch("tpl_fixed", 3);
  const { CouponRecallLag, ...others } = faults;
  await raise(Object.keys(others), async () => {
    for (const { undone } of Object.values(faults)) await psql.run(undone);
    for (const { made } of Object.values(others)) await psql.run(made);
  });
  await raise(["CouponRecallLag"], () => psql.run(CouponRecallLag.made));

  const stopping = new AbortController().signal;
  const check = createChecker({ address: world.address, role: "coupon_owner", log: createLog("silent"), stopping });
  await raise(["CouponInvariantsBroken"], check);
  const setChecked = "update core.invariant_check set checked_at = now() - interval '3 days'";
  await raise(["CouponInvariantsNotChecked"], () => owner.rows(setChecked));
  await raise(["CouponInvariantsNeverChecked"], () => owner.rows("delete from core.invariant_check"));

  await psql.run(`
    create function public.fail() returns trigger language plpgsql as
      $$ begin raise exception 'No space left on device' using errcode = 'disk_full'; end $$;
    create trigger fail before insert on core.request execute function public.fail();
    alter table core.request enable always trigger fail`);
  const redeem = () => till.post("/v1/coupons/redeem", { request_id: "r1", coupon: coupon!.code, merchant: "mch_a" });
  await raise(["CouponDiskFull", "CouponServerErrors"], redeem, { isRate: true });

  await raise(["CouponNoWorker", "CouponServiceDown"], () => work.stop("SIGKILL"));
  await raise(["CouponDatabaseDown"], async () => {
    proxy.set({ cutsConnect: () => true });
    proxy.cutAll();
  });
  t.strictSame(raised.sort(), alerts.map(({ name }) => name).sort());
});

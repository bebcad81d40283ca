// expire: many released coupons that are due at the same moment become EXPIRED. Measures the size of the steps, whether
// each coupon gets exactly one event, and what tills notice meanwhile.
import { openSession } from "../../src/database/connect.ts";
import { startLoader } from "./contenders.ts";
import { joined, quantile, type Report } from "./results.ts";
import { loadAt } from "./latency.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openEnvironment, patience, settle, type Environment } from "./environment.ts";
import { waitUntil } from "../support/wait-until.ts";

const tillsPerSecond = 200;
const windowsBefore = 3;
// A worker looks for due coupons once a minute, and spends at most half of its time on them.
const mostSeconds = 180;

export async function benchExpire(server: Server, { expireCount, seconds }: Settings): Promise<Report> {
  const environment = await openEnvironment(server);
  const pool = await environment.makePool(tillsPerSecond * (mostSeconds + seconds * (windowsBefore + 2)));
  let worker = await environment.startWorker();
  const batch = await environment.submit(expireCount);
  await environment.untilMinted(batch);
  await environment.release(batch);
  await settle(environment);

  const loader = startLoader();
  const load = () => loadAt(environment, pool, loader, tillsPerSecond, seconds);
  await load();
  const without: Float64Array[] = [];
  for (let number = 0; number < windowsBefore; number += 1) without.push(await load());

  await worker.stop();
  await makeDue(environment, batch);
  await settle(environment);
  worker = await environment.startWorker();
  const countExpired = async (): Promise<number> => {
    const [row] = await environment.owner.rows<{ count: number }>(
      "select b.expired_through as count from core.batch b where b.external_id = $1",
      [batch],
    );
    return row!.count;
  };
  await waitUntil("the first coupons to expire", async () => (await countExpired()) > 0, patience);
  const since = performance.now();
  const during: Float64Array[] = [];
  while ((await countExpired()) < expireCount && during.length * seconds < mostSeconds) during.push(await load());
  const lasted = (performance.now() - since) / 1_000;
  loader.end();
  const [found] = await environment.owner.rows<{ expired: number; events: number; largest: number }>(
    `select (select count(*)::int from core.coupon c where c.status = 'EXPIRED') as expired,
            (select count(distinct e.coupon_id)::int from core.event e where e.event_type = 'coupon.expired') as events,
            (select max(s.count)::int
             from (select count(*) from core.event e
                   where e.event_type = 'coupon.expired' group by e.xmin::text) s) as largest`,
  );
  await worker.stop();
  await environment.close();
  const [p99Before, p99During] = [quantile(joined(without), 0.99), quantile(joined(during), 0.99)];
  return {
    results: [
      { name: `coupons due at once`, value: expireCount, unit: "" },
      { name: "expired", value: found!.expired, unit: "", aim: { atLeast: expireCount } },
      { name: "coupon.expired events", value: found!.events, unit: "", aim: { atLeast: expireCount } },
      { name: "largest step", value: found!.largest, unit: "rows", aim: { atMost: 1_000 } },
      { name: "expiry", value: expireCount / lasted, unit: "/s" },
      { name: `p99 at ${tillsPerSecond}/s before`, value: p99Before, unit: "ms" },
      { name: `p99 at ${tillsPerSecond}/s during`, value: p99During, unit: "ms" },
      { name: "p99 during / before", value: p99During / p99Before, unit: "", aim: { atMost: 2 } },
    ],
    details: {
      p99Before: without.map((one) => quantile(one, 0.99)),
      p99During: during.map((one) => quantile(one, 0.99)),
    },
  };
}

// Moves the end of validity to now, past the triggers and without a patch by an admin.
async function makeDue(environment: Environment, batch: string): Promise<void> {
  const session = openSession(environment.address, { name: "coupon bench" });
  await session.run("set session_replication_role = replica");
  await session.rows(
    `update core.coupon c
     set valid_to = clock_timestamp()
     from core.batch b
     where b.tenant_id = c.tenant_id and b.batch_id = c.batch_id and b.external_id = $1`,
    [batch],
  );
  await session.rows("update core.batch b set valid_to = clock_timestamp() where b.external_id = $1", [batch]);
  await session.end();
}

// held: what others notice at a fixed rate when a psql session holds the row of one coupon. The first round is a
// warm-up with fresh statistics after it, because plans for empty tables are bad.
import { createClient } from "../support/signing-client.ts";
import { openSession } from "../../src/database/connect.ts";
import { startLoader } from "./contenders.ts";
import type { CouponPool } from "./coupon-pool.ts";
import { joined, quantile, type Report } from "./results.ts";
import { readConnections, type Settings } from "./settings.ts";
import { settle, type Environment } from "./environment.ts";
import { accessKey, secret } from "./tenant.ts";
import { fixedPerSecond } from "./rate-names.ts";
import { redeemRequest } from "./requests.ts";

const heldSeconds = 2;

// While the row is held, a till tries to redeem that coupon every 100 ms, and all of these calls have to wait.
export async function benchHeld(environment: Environment, pool: CouponPool, { rounds }: Settings): Promise<Report> {
  const worker = await environment.startWorker();
  const loader = startLoader();
  const psql = openSession(environment.address, { name: "coupon bench psql", role: "coupon_owner" });
  const client = createClient({ url: environment.url, accessKey, secret });
  const [without, during]: [Float64Array[], Float64Array[]] = [[], []];
  for (let number = 0; number <= rounds; number += 1) {
    const free = await loadAt(environment, pool, loader, fixedPerSecond, heldSeconds);
    const [coupon] = await pool.draw(1);
    await psql.run("begin");
    await psql.rows("select from core.coupon c where c.tenant_id = $1 and c.lookup_hash = $2 for update", [
      environment.tenantId,
      coupon!.lookup,
    ]);
    const asked: Promise<{ status: number }>[] = [];
    const ask = () => asked.push(client.post("/v1/coupons/redeem", JSON.parse(redeemRequest(coupon!).body)));
    ask();
    const asking = setInterval(ask, 100);
    const whileHeld = await loadAt(environment, pool, loader, fixedPerSecond, heldSeconds);
    clearInterval(asking);
    await psql.run("rollback");
    const redeemed = (await Promise.all(asked)).filter(({ status }) => status === 200).length;
    if (redeemed !== 1) throw new Error(`the held coupon was redeemed ${redeemed} times`);
    if (number === 0) {
      await settle(environment);
      continue;
    }
    without.push(free);
    during.push(whileHeld);
  }
  loader.end();
  await psql.end();
  await worker.stop();
  const [p99Without, p99During] = [quantile(joined(without), 0.99), quantile(joined(during), 0.99)];
  return {
    results: [
      { name: `p99 at ${fixedPerSecond}/s`, value: p99Without, unit: "ms" },
      { name: "p99 while psql holds one coupon", value: p99During, unit: "ms" },
      { name: "p99 while held / otherwise", value: p99During / p99Without, unit: "", aim: { atMost: 2 } },
    ],
  };
}

// Returns the milliseconds of each redemption, counted from the time at which it was due.
export async function loadAt(
  environment: Environment,
  pool: CouponPool,
  loader: ReturnType<typeof startLoader>,
  perSecond: number,
  seconds: number,
): Promise<Float64Array> {
  const coupons = await pool.draw(perSecond * seconds);
  const chains = coupons.map((coupon) => [redeemRequest(coupon)]);
  const go = await loader.prepare({
    url: environment.url,
    accessKey,
    secret,
    connections: readConnections(),
    seconds,
    perSecond,
    chains,
  });
  const result = await go();
  pool.giveBack(coupons.slice(result.count));
  return result.latencies[0]!;
}

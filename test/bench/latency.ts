// fixed: the latency of redemptions at 500 per second. single: the latency for one client, over HTTP and for a call of
// gate.perform on a connection of the same driver. held: what others notice when a psql session holds the row of one
// coupon. The first round of each is a warm-up with fresh statistics after it, because plans for empty tables are bad.
import { createClient } from "../support/signing-client.ts";
import { openSession } from "../../src/database/connect.ts";
import { startLoader } from "./contenders.ts";
import type { CouponPool } from "./coupon-pool.ts";
import type { DriverJob, DriverResult } from "./driver.ts";
import { joined, quantile, type Report } from "./results.ts";
import { startChildProcess } from "./child-process.ts";
import type { Settings } from "./settings.ts";
import { settle, type Environment } from "./environment.ts";
import { accessKey, secret } from "./tenant.ts";
import { redeemRequest, redeemCall } from "./requests.ts";

const fixedPerSecond = 500;
const heldSeconds = 2;
// More than one client can achieve.
const singlePerSecond = 3_000;

export async function benchFixed(
  environment: Environment,
  pool: CouponPool,
  { seconds, rounds }: Settings,
): Promise<Report> {
  const loader = startLoader();
  const latencies: Float64Array[] = [];
  for (let number = 0; number <= rounds; number += 1) {
    const latency = await loadAt(environment, pool, loader, fixedPerSecond, seconds);
    if (number > 0) latencies.push(latency);
    else await settle(environment);
  }
  loader.end();
  const all = joined(latencies);
  const name = `${fixedPerSecond}/s`;
  return {
    results: [
      { name: `${name}: p50`, value: quantile(all, 0.5), unit: "ms", aim: { atMost: 5 } },
      { name: `${name}: p99`, value: quantile(all, 0.99), unit: "ms", aim: { atMost: 50 } },
      { name: `${name}: longest`, value: quantile(all, 1), unit: "ms" },
    ],
    details: { p99: latencies.map((one) => quantile(one, 0.99)) },
  };
}

// While the row is held, a till tries to redeem that coupon every 100 ms, and all of these calls have to wait.
export async function benchHeld(environment: Environment, pool: CouponPool, { rounds }: Settings): Promise<Report> {
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
    connections: 64,
    seconds,
    perSecond,
    chains,
  });
  const result = await go();
  pool.giveBack(coupons.slice(result.count));
  return result.latencies[0]!;
}

export async function benchSingle(
  environment: Environment,
  pool: CouponPool,
  { seconds: most, rounds }: Settings,
): Promise<Report> {
  const seconds = Math.min(most, 2);
  const loader = startLoader();
  const driver = startChildProcess<DriverJob, DriverResult>("driver.ts");

  async function http(): Promise<Float64Array> {
    const coupons = await pool.draw(singlePerSecond * seconds);
    const go = await loader.prepare({
      url: environment.url,
      accessKey,
      secret,
      connections: 1,
      seconds,
      chains: coupons.map((coupon) => [redeemRequest(coupon)]),
    });
    const { count, latencies } = await go();
    pool.giveBack(coupons.slice(count));
    return latencies[0]!;
  }

  async function call(): Promise<Float64Array> {
    const coupons = await pool.draw(singlePerSecond * seconds);
    const go = await driver.prepare({
      address: environment.address,
      role: "coupon_api",
      connections: 1,
      warmSeconds: 0,
      seconds,
      isAnswer: true,
      steps: ["select http_status, body, is_replay from gate.perform($1, $2::text::jsonb, $3)"],
      params: coupons.map((coupon) => [
        environment.tenantId,
        JSON.stringify([redeemCall(coupon, environment.credentialId, environment.keys)]),
        false,
      ]),
    });
    const { count, latencies } = await go();
    pool.giveBack(coupons.slice(count));
    return latencies;
  }

  const taken: { http: Float64Array[]; call: Float64Array[] } = { http: [], call: [] };
  for (let number = 0; number <= rounds; number += 1) {
    for (const [list, run] of [
      [taken.http, http],
      [taken.call, call],
    ] as const) {
      const latency = await run();
      if (number > 0) list.push(latency);
    }
    if (number === 0) await settle(environment);
  }
  loader.end();
  driver.end();
  const [ofHttp, ofCall] = [taken.http, taken.call].map((lists) => quantile(joined(lists), 0.5)) as [number, number];
  return {
    results: [
      { name: "one client: p50 over HTTP", value: ofHttp, unit: "ms" },
      { name: "one client: p50 of gate.perform", value: ofCall, unit: "ms" },
      { name: "one client: HTTP minus gate.perform", value: ofHttp - ofCall, unit: "ms", aim: { atMost: 1.5 } },
    ],
  };
}

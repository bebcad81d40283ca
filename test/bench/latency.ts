// fixed: how long a redemption takes at 500 a second. single: what one client alone waits for over HTTP, and for a call of
// gate.perform on a connection of the same driver. held: what others notice of a psql session that holds the row of one coupon.
// The first round of each is a warm one, with fresh statistics after it: plans made for empty tables are bad.
import { createClient } from "../../src/commands/client.ts";
import { openSession } from "../../src/database/connect.ts";
import { startLoader } from "./contenders.ts";
import type { Deck } from "./coupon-pool.ts";
import type { DriverJob, DriverResult } from "./driver.ts";
import { joined, quantile, type Report } from "./figures.ts";
import { startHelper } from "./child-process.ts";
import type { Settings } from "./settings.ts";
import { settle, type Stage } from "./environment.ts";
import { accessKey, secret } from "./tenant.ts";
import { redeemAsk, redeemCall } from "./requests.ts";

const fixedPerSecond = 500;
const heldSeconds = 2;
// More than one client alone ever gets.
const singlePerSecond = 3_000;

export async function benchFixed(stage: Stage, deck: Deck, { seconds, rounds }: Settings): Promise<Report> {
  const loader = startLoader();
  const latencies: Float64Array[] = [];
  for (let number = 0; number <= rounds; number += 1) {
    const latency = await loadAt(stage, deck, loader, fixedPerSecond, seconds);
    if (number > 0) latencies.push(latency);
    else await settle(stage);
  }
  loader.end();
  const all = joined(latencies);
  const name = `${fixedPerSecond}/s`;
  return {
    figures: [
      { name: `${name}: p50`, value: quantile(all, 0.5), unit: "ms", aim: { atMost: 5 } },
      { name: `${name}: p99`, value: quantile(all, 0.99), unit: "ms", aim: { atMost: 50 } },
      { name: `${name}: longest`, value: quantile(all, 1), unit: "ms" },
    ],
    details: { p99: latencies.map((one) => quantile(one, 0.99)) },
  };
}

// While the row is held, a till asks for that coupon each 100 ms, and all of these have to wait for it.
export async function benchHeld(stage: Stage, deck: Deck, { rounds }: Settings): Promise<Report> {
  const loader = startLoader();
  const psql = openSession(stage.address, { name: "coupon bench psql", role: "coupon_owner" });
  const client = createClient({ url: stage.url, accessKey, secret });
  const [without, during]: [Float64Array[], Float64Array[]] = [[], []];
  for (let number = 0; number <= rounds; number += 1) {
    const free = await loadAt(stage, deck, loader, fixedPerSecond, heldSeconds);
    const [coupon] = await deck.draw(1);
    await psql.run("begin");
    await psql.rows("select from core.coupon c where c.tenant_id = $1 and c.lookup_hash = $2 for update", [
      stage.tenantId,
      coupon!.lookup,
    ]);
    const asked: Promise<{ status: number }>[] = [];
    const ask = () => asked.push(client.post("/v1/coupons/redeem", JSON.parse(redeemAsk(coupon!).body)));
    ask();
    const asking = setInterval(ask, 100);
    const beside = await loadAt(stage, deck, loader, fixedPerSecond, heldSeconds);
    clearInterval(asking);
    await psql.run("rollback");
    const redeemed = (await Promise.all(asked)).filter(({ status }) => status === 200).length;
    if (redeemed !== 1) throw new Error(`the coupon that was held was redeemed ${redeemed} times`);
    if (number === 0) {
      await settle(stage);
      continue;
    }
    without.push(free);
    during.push(beside);
  }
  loader.end();
  await psql.end();
  const [p99Without, p99During] = [quantile(joined(without), 0.99), quantile(joined(during), 0.99)];
  return {
    figures: [
      { name: `p99 at ${fixedPerSecond}/s`, value: p99Without, unit: "ms" },
      { name: "p99 while psql holds one coupon", value: p99During, unit: "ms" },
      { name: "p99 while held / else", value: p99During / p99Without, unit: "", aim: { atMost: 2 } },
    ],
  };
}

// Milliseconds of each redemption, at so many a second, from the moment at which it was to be sent.
export async function loadAt(
  stage: Stage,
  deck: Deck,
  loader: ReturnType<typeof startLoader>,
  perSecond: number,
  seconds: number,
): Promise<Float64Array> {
  const coupons = await deck.draw(perSecond * seconds);
  const chains = coupons.map((coupon) => [redeemAsk(coupon)]);
  const go = await loader.prepare({ url: stage.url, accessKey, secret, connections: 64, seconds, perSecond, chains });
  const result = await go();
  deck.giveBack(coupons.slice(result.count));
  return result.latencies[0]!;
}

export async function benchSingle(stage: Stage, deck: Deck, { seconds: most, rounds }: Settings): Promise<Report> {
  const seconds = Math.min(most, 2);
  const loader = startLoader();
  const driver = startHelper<DriverJob, DriverResult>("driver.ts");

  async function http(): Promise<Float64Array> {
    const coupons = await deck.draw(singlePerSecond * seconds);
    const go = await loader.prepare({
      url: stage.url,
      accessKey,
      secret,
      connections: 1,
      seconds,
      chains: coupons.map((coupon) => [redeemAsk(coupon)]),
    });
    const { count, latencies } = await go();
    deck.giveBack(coupons.slice(count));
    return latencies[0]!;
  }

  async function call(): Promise<Float64Array> {
    const coupons = await deck.draw(singlePerSecond * seconds);
    const go = await driver.prepare({
      address: stage.address,
      role: "coupon_api",
      connections: 1,
      warmSeconds: 0,
      seconds,
      isAnswer: true,
      steps: ["select http_status, body, is_replay from gate.perform($1, $2::text::jsonb, $3)"],
      params: coupons.map((coupon) => [
        stage.tenantId,
        JSON.stringify([redeemCall(coupon, stage.credentialId, stage.keys)]),
        false,
      ]),
    });
    const { count, latencies } = await go();
    deck.giveBack(coupons.slice(count));
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
    if (number === 0) await settle(stage);
  }
  loader.end();
  driver.end();
  const [ofHttp, ofCall] = [taken.http, taken.call].map((lists) => quantile(joined(lists), 0.5)) as [number, number];
  return {
    figures: [
      { name: "one client: p50 over HTTP", value: ofHttp, unit: "ms" },
      { name: "one client: p50 of gate.perform", value: ofCall, unit: "ms" },
      { name: "one client: HTTP above gate.perform", value: ofHttp - ofCall, unit: "ms", aim: { atMost: 1.5 } },
    ],
  };
}

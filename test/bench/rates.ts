// floor, function, http, http-lock-confirm, http-query: their rounds alternate, so that other load on the machine
// affects all of them, and their medians are compared. Before the first measured round come a warm-up round of each,
// fresh statistics, a checkpoint, and a second warm-up round. No worker runs (unless BENCH_WORKER=on), because the
// redemption is measured, not its sequencing.
import { createFloor, createFunction, createHttp, type Contender, type Round } from "./contenders.ts";
import type { CouponPool } from "./coupon-pool.ts";
import { joined, median, quantile, type Result, type Report } from "./results.ts";
import { difference, readCosts, readHotShare, type Reading } from "./measure.ts";
import type { Settings } from "./settings.ts";
import { settle, type Environment } from "./environment.ts";

export const rateNames = [
  "floor",
  "floor-one-statement",
  "function",
  "http",
  "http-lock-confirm",
  "http-query",
] as const;
export type RateName = (typeof rateNames)[number];
type Measurement = Round & { costs: Reading };

export async function benchRates(
  environment: Environment,
  pool: CouponPool,
  names: readonly RateName[],
  { seconds, rounds, isWorkerBeside }: Settings,
): Promise<Report> {
  const contenders = new Map<RateName, Contender>();
  for (const name of rateNames.filter((one) => names.includes(one)))
    contenders.set(name, await create(name, environment, pool));
  const worker = isWorkerBeside ? await environment.startWorker() : null;
  const measured = await alternate(environment, contenders, { seconds, rounds });
  await worker?.stop();
  for (const contender of contenders.values()) contender.end();

  const results = [...measured].flatMap(([name, list]) => describe(name, list, contenders.get(name)!.isRedeeming));
  results.push(...compare(measured));
  if ([...contenders.values()].some(({ isRedeeming }) => isRedeeming)) {
    results.push({
      name: "HOT updates of coupons",
      value: (await readHotShare(environment.owner)) * 100,
      unit: "%",
      aim: { atLeast: 90 },
    });
  }
  const details = Object.fromEntries(
    [...measured].map(([name, list]) => [
      name,
      list.map(({ latencies: _, ...round }) => ({ ...round, perSecond: rateOf(round) })),
    ]),
  );
  return { results, details };
}

function create(name: RateName, environment: Environment, pool: CouponPool): Promise<Contender> | Contender {
  switch (name) {
    case "floor":
      return createFloor(environment, "transaction");
    case "floor-one-statement":
      return createFloor(environment, "statement");
    case "function":
      return createFunction(environment, pool);
    case "http":
      return createHttp(environment, pool, "redeem");
    case "http-lock-confirm":
      return createHttp(environment, pool, "lock-confirm");
    case "http-query":
      return createHttp(environment, pool, "query");
  }
}

async function alternate(
  environment: Environment,
  contenders: Map<RateName, Contender>,
  { seconds, rounds }: Pick<Settings, "seconds" | "rounds">,
): Promise<Map<RateName, Measurement[]>> {
  const measured = new Map<RateName, Measurement[]>([...contenders.keys()].map((name) => [name, []]));
  for (let number = -1; number <= rounds; number += 1) {
    if (number === 0) await settle(environment);
    for (const [name, contender] of contenders) {
      const go = await contender.prepare(seconds);
      const readings: Reading[] = [];
      const read = async () => {
        readings.push(await readCosts(environment.measured));
      };
      const round = await go({ begin: read, end: read });
      // Two warm-up rounds: the tables of redemptions are empty before the first one, and plans for empty tables are
      // bad.
      if (number > 0) measured.get(name)!.push({ ...round, costs: difference(readings[0]!, readings[1]!) });
    }
  }
  return measured;
}

export const rateOf = ({ count, seconds }: Pick<Round, "count" | "seconds">): number => count / seconds;

function describe(name: RateName, list: Measurement[], isRedeeming: boolean): Result[] {
  const results: Result[] = [{ name, value: median(list.map(rateOf)), unit: "/s" }];
  list[0]?.latencies?.forEach((_, step) => {
    const all = joined(list.map((round) => round.latencies![step]!));
    const label = name === "http-lock-confirm" ? `${name}, ${["lock", "confirm"][step]}` : name;
    results.push(
      { name: `${label}: p50`, value: quantile(all, 0.5), unit: "ms" },
      { name: `${label}: p99`, value: quantile(all, 0.99), unit: "ms" },
    );
  });
  if (isRedeeming) {
    // The first write to a page after a checkpoint logs the whole page, so the first rounds write more WAL.
    const each = (read: (costs: Reading) => number) => median(list.map(({ costs, count }) => read(costs) / count));
    const aim = name === "http" ? { aim: { atMost: 1_500 } } : {};
    results.push({
      name: `${name}: WAL`,
      value: each(({ walBytes }) => walBytes),
      unit: "bytes per redemption",
      ...aim,
    });
    results.push({
      name: `${name}: full page images in it`,
      value: each(({ fullPageImages }) => fullPageImages),
      unit: "per redemption",
    });
  }
  const cpu = {
    postgres: (one: Measurement) => one.costs.postgresCpu,
    serve: (one: Measurement) => one.costs.serveCpu,
    load: (one: Measurement) => one.loadCpuSeconds,
  };
  for (const [group, read] of Object.entries(cpu)) {
    const spent = list.flatMap((one) => (read(one) === null ? [] : [(read(one)! * 1e6) / one.count]));
    if (spent.length > 0 && median(spent) > 0)
      results.push({ name: `${name}: CPU of ${group}`, value: median(spent), unit: "µs per call" });
  }
  return results;
}

function compare(measured: Map<RateName, Measurement[]>): Result[] {
  const rate = (name: RateName) => {
    const list = measured.get(name);
    return list === undefined ? null : median(list.map(rateOf));
  };
  const aims: [RateName, RateName, number | null][] = [
    ["http", "function", 1.3],
    ["http", "floor", 0.5],
    ["http", "floor-one-statement", null],
    ["function", "floor", null],
  ];
  return aims.flatMap(([one, other, atLeast]) => {
    const [a, b] = [rate(one), rate(other)];
    return a === null || b === null
      ? []
      : [{ name: `${one} / ${other}`, value: a / b, unit: "", ...(atLeast !== null && { aim: { atLeast } }) }];
  });
}

// floor, function, http, http-lock-confirm, http-query: rounds of each in turn, so that whatever the machine does beside
// meets all of them; the medians are compared. Before the first: a warm round of each, fresh statistics, a checkpoint, and
// another warm round. No worker runs beside (but with BENCH_WORKER=on), so what is measured is the redemption and not its
// sequencing.
import { createFloor, createFunction, createHttp, type Contender, type Round } from "./contenders.ts";
import type { Deck } from "./coupon-pool.ts";
import { joined, median, quantile, type Figure, type Report } from "./figures.ts";
import { difference, readCosts, readHotShare, type Reading } from "./measure.ts";
import type { Settings } from "./settings.ts";
import { settle, type Stage } from "./environment.ts";

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
  stage: Stage,
  deck: Deck,
  names: readonly RateName[],
  { seconds, rounds, isWorkerBeside }: Settings,
): Promise<Report> {
  const contenders = new Map<RateName, Contender>();
  for (const name of rateNames.filter((one) => names.includes(one)))
    contenders.set(name, await create(name, stage, deck));
  const worker = isWorkerBeside ? await stage.startWorker() : null;
  const measured = await alternate(stage, contenders, { seconds, rounds });
  await worker?.stop();
  for (const contender of contenders.values()) contender.end();

  const figures = [...measured].flatMap(([name, list]) => describe(name, list, contenders.get(name)!.isRedeeming));
  figures.push(...compare(measured));
  if ([...contenders.values()].some(({ isRedeeming }) => isRedeeming)) {
    figures.push({
      name: "HOT updates of coupons",
      value: (await readHotShare(stage.owner)) * 100,
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
  return { figures, details };
}

function create(name: RateName, stage: Stage, deck: Deck): Promise<Contender> | Contender {
  switch (name) {
    case "floor":
      return createFloor(stage, "transaction");
    case "floor-one-statement":
      return createFloor(stage, "statement");
    case "function":
      return createFunction(stage, deck);
    case "http":
      return createHttp(stage, deck, "redeem");
    case "http-lock-confirm":
      return createHttp(stage, deck, "lock-confirm");
    case "http-query":
      return createHttp(stage, deck, "query");
  }
}

async function alternate(
  stage: Stage,
  contenders: Map<RateName, Contender>,
  { seconds, rounds }: Pick<Settings, "seconds" | "rounds">,
): Promise<Map<RateName, Measurement[]>> {
  const measured = new Map<RateName, Measurement[]>([...contenders.keys()].map((name) => [name, []]));
  for (let number = -1; number <= rounds; number += 1) {
    if (number === 0) await settle(stage);
    for (const [name, contender] of contenders) {
      const go = await contender.prepare(seconds);
      const readings: Reading[] = [];
      const read = async () => {
        readings.push(await readCosts(stage.measured));
      };
      const round = await go({ begin: read, end: read });
      // The first two are warm ones: before the first the tables of redemptions are empty, and plans made then are bad.
      if (number > 0) measured.get(name)!.push({ ...round, costs: difference(readings[0]!, readings[1]!) });
    }
  }
  return measured;
}

export const rateOf = ({ count, seconds }: Pick<Round, "count" | "seconds">): number => count / seconds;

function describe(name: RateName, list: Measurement[], isRedeeming: boolean): Figure[] {
  const figures: Figure[] = [{ name, value: median(list.map(rateOf)), unit: "/s" }];
  list[0]?.latencies?.forEach((_, step) => {
    const all = joined(list.map((round) => round.latencies![step]!));
    const label = name === "http-lock-confirm" ? `${name}, ${["lock", "confirm"][step]}` : name;
    figures.push(
      { name: `${label}: p50`, value: quantile(all, 0.5), unit: "ms" },
      { name: `${label}: p99`, value: quantile(all, 0.99), unit: "ms" },
    );
  });
  if (isRedeeming) {
    // After a checkpoint each page is written whole once, so the first rounds have a little more.
    const each = (read: (costs: Reading) => number) => median(list.map(({ costs, count }) => read(costs) / count));
    const aim = name === "http" ? { aim: { atMost: 1_500 } } : {};
    figures.push({ name: `${name}: WAL`, value: each(({ walBytes }) => walBytes), unit: "bytes a redemption", ...aim });
    figures.push({
      name: `${name}: full page images in it`,
      value: each(({ fullPageImages }) => fullPageImages),
      unit: "a redemption",
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
      figures.push({ name: `${name}: CPU of ${group}`, value: median(spent), unit: "µs each" });
  }
  return figures;
}

function compare(measured: Map<RateName, Measurement[]>): Figure[] {
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

// Rates, latencies and costs of the contenders, all beside a worker, as in production. Their rounds alternate, so that
// other load on the machine affects all of them, and each figure is the median of the rounds. Costs include the
// sequencer: a round's costs are read when its events are in the feed.
import { createFunction, createHttp, createSingleFunction, type Contender } from "./contenders.ts";
import type { CouponPool } from "./coupon-pool.ts";
import { makeCheckpoint, settle, untilCaughtUp, type Environment } from "./environment.ts";
import { createFloor } from "./floor.ts";
import { cpuTimes, difference, readCosts, readHotShare, type Reading } from "./measure.ts";
import { fixedPerSecond, rateNames, type Measurement, type Measurements, type RateName } from "./rate-names.ts";
import { compareRates, tabulate } from "./rate-tables.ts";
import type { Report } from "./results.ts";
import type { Settings } from "./settings.ts";
import { waitUntil } from "../support/wait-until.ts";

export async function benchRates(
  environment: Environment,
  pool: CouponPool,
  names: readonly RateName[],
  { seconds, rounds }: Settings,
): Promise<Report> {
  const contenders = new Map<RateName, Contender>();
  for (const name of rateNames.filter((one) => names.includes(one)))
    contenders.set(name, await create(name, environment, pool));
  const worker = await environment.startWorker();
  const beside = { ...environment, measured: { ...environment.measured, workPid: worker.pid } };
  const of = (isAfterCheckpoint: boolean) =>
    new Map([...contenders].filter(([, contender]) => (contender.isAfterCheckpoint ?? false) === isAfterCheckpoint));
  // Checkpoints come last: after one, the pages of the others would be cold too.
  const measured: Measurements = new Map([
    ...(await alternate(beside, of(false), { seconds, rounds })),
    ...(await alternate(beside, of(true), { seconds, rounds })),
  ]);
  await worker.stop();
  for (const contender of contenders.values()) contender.end();

  const results = compareRates(measured);
  if ([...contenders.values()].some(({ isRedeeming }) => isRedeeming)) {
    const share = (await readHotShare(environment.owner)) * 100;
    results.push({ name: "HOT updates of coupons", value: share, unit: "%", aim: { atLeast: 90 } });
  }
  const details = Object.fromEntries(
    [...measured].map(([name, list]) => [name, list.map(({ latencies: _, ...round }) => round)]),
  );
  return { results, tables: tabulate(measured), details };
}

function create(name: RateName, environment: Environment, pool: CouponPool): Promise<Contender> | Contender {
  switch (name) {
    case "floor":
      return createFloor(environment, 64);
    case "floor-8":
      return createFloor(environment, 8);
    case "floor-1":
      return createFloor(environment, 1);
    case "function":
      return createFunction(environment, pool);
    case "function-1":
      return createSingleFunction(environment, pool);
    case "http":
      return createHttp(environment, pool);
    case "http-8":
      return createHttp(environment, pool, { connections: 8 });
    case "http-1":
      return createHttp(environment, pool, { connections: 1 });
    case "fixed":
      return createHttp(environment, pool, { perSecond: fixedPerSecond });
    case "http-lock-confirm":
      return createHttp(environment, pool, { kind: "lock-confirm" });
    case "http-query":
      return createHttp(environment, pool, { kind: "query" });
    case "http-after-checkpoint":
      return createHttp(environment, pool, { isAfterCheckpoint: true });
  }
}

// Before the first measured round come a warm-up round of each, fresh statistics, a checkpoint, and a second warm-up
// round: plans for empty tables are bad, and the first change of a page after a checkpoint logs the whole page. A
// single round only shows that the benchmark works, so the second warm-up is enough.
async function alternate(
  environment: Environment,
  contenders: Map<RateName, Contender>,
  { seconds, rounds }: Pick<Settings, "seconds" | "rounds">,
): Promise<Measurements> {
  const measured: Measurements = new Map([...contenders.keys()].map((name) => [name, []]));
  if (contenders.size === 0) return measured;
  for (let number = rounds === 1 ? 0 : -1; number <= rounds; number += 1) {
    if (number === 0) await settle(environment);
    for (const [name, contender] of contenders) {
      const go = await contender.prepare(seconds);
      if (contender.isAfterCheckpoint) await makeCheckpoint(environment);
      const measurement = await runRound(environment, contender, go);
      if (number > 0) measured.get(name)!.push(measurement);
    }
  }
  return measured;
}

async function runRound(
  environment: Environment,
  contender: Contender,
  go: Awaited<ReturnType<Contender["prepare"]>>,
): Promise<Measurement> {
  const readings: Reading[] = [];
  const read = async () => void readings.push(await readCosts(environment.measured));
  // A round that is repeated begins anew.
  const begin = () => {
    readings.length = 0;
    return read();
  };
  const round = await go({ begin, end: read });
  const endedAt = performance.now();
  await untilCaughtUp(environment);
  const feedSeconds = (performance.now() - endedAt) / 1_000;
  // With margins, the sequencer works in the measured time as much as its calls need, because it does so before too.
  if (!contender.hasMargins) await read();
  await waitUntil("the sessions of pgbench to end", () => readings[1]!.pgbenchPids.every((pid) => !cpuTimes(pid)));
  return { ...round, costs: difference(readings[0]!, readings.at(-1)!), feedSeconds };
}

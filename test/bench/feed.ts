// feed: how many events per second are sequenced, and pulled over HTTP at the largest limit; and how long after a
// redemption its event can be pulled while tills redeem.
import { startLoader } from "./contenders.ts";
import { median, quantile, type Report } from "./results.ts";
import { fillRedemptions } from "./fill.ts";
import { startChildProcess } from "./child-process.ts";
import { loadAt } from "./latency.ts";
import type { ReaderJob, ReaderResult } from "./reader.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openEnvironment, patience, type Environment } from "./environment.ts";
import { accessKey, secret } from "./tenant.ts";
import { waitUntil } from "../support/wait-until.ts";

const limit = 1_000;
const tillsPerSecond = 200;

export async function benchFeed(server: Server, { eventCount, seconds, rounds }: Settings): Promise<Report> {
  const environment = await openEnvironment(server);
  await environment.makePool(eventCount);
  await fillRedemptions(environment);
  const sequencedPerSecond = eventCount / (await untilSequenced(environment, eventCount));

  const service = { url: environment.url, accessKey, secret };
  const reader = startChildProcess<ReaderJob, ReaderResult>("reader.ts");
  const pull = async (cursor: string | null, wanted: number) =>
    (await reader.prepare({ ...service, kind: "pull", cursor, limit, wanted }))();
  const rates: number[] = [];
  let cursor: string | null = null;
  // The first round is a warm-up.
  for (let number = 0; number <= rounds; number += 1) {
    const read = await pull(null, eventCount);
    if (number > 0) rates.push(read.count / read.seconds);
    cursor = read.cursor;
  }

  const redemptions = tillsPerSecond * seconds * 2;
  const pool = await environment.makePool(redemptions);
  const worker = await environment.startWorker();
  const loader = startLoader();
  const loading = async () => {
    await loadAt(environment, pool, loader, tillsPerSecond, seconds);
    await loadAt(environment, pool, loader, tillsPerSecond, seconds);
  };
  const [{ lags }] = await Promise.all([pull(cursor, redemptions), loading()]);
  loader.end();
  reader.end();
  await worker.stop();
  await environment.close();
  return {
    results: [
      { name: `pulled at limit ${limit}`, value: median(rates), unit: "events/s", aim: { atLeast: 20_000 } },
      { name: "sequenced", value: sequencedPerSecond, unit: "events/s" },
      { name: `lag at ${tillsPerSecond} redemptions/s: p50`, value: quantile(lags, 0.5), unit: "ms" },
      { name: `lag at ${tillsPerSecond} redemptions/s: p99`, value: quantile(lags, 0.99), unit: "ms" },
    ],
    details: { rates },
  };
}

// Returns the seconds from the start of a worker until so many events have their feed positions and business days.
export async function untilSequenced(environment: Environment, count: number): Promise<number> {
  const since = performance.now();
  const worker = await environment.startWorker();
  const areSequenced = async (): Promise<boolean> => {
    const [row] = await environment.owner.rows<{ sequenced: number }>(
      "select coalesce(sum(f.last_position), 0)::int as sequenced from core.feed f",
    );
    return row!.sequenced >= count;
  };
  await waitUntil(`${count} sequenced events`, areSequenced, patience);
  const seconds = (performance.now() - since) / 1_000;
  await worker.stop();
  return seconds;
}

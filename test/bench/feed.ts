// feed: events a second that are sequenced and that are pulled over HTTP at the largest limit; and how long after a redemption its
// event can be pulled, while tills redeem.
import { startLoader } from "./contenders.ts";
import { median, quantile, type Report } from "./figures.ts";
import { fillRedemptions } from "./fill.ts";
import { startHelper } from "./child-process.ts";
import { loadAt } from "./latency.ts";
import type { ReaderJob, ReaderResult } from "./reader.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openStage, type Stage } from "./environment.ts";
import { accessKey, secret } from "./tenant.ts";
import { until } from "./wait-until.ts";

const limit = 1_000;
const tillsPerSecond = 200;

export async function benchFeed(server: Server, { eventCount, seconds, rounds }: Settings): Promise<Report> {
  const stage = await openStage(server);
  await stage.makeDeck(eventCount);
  await fillRedemptions(stage);
  const sequencedPerSecond = eventCount / (await untilSequenced(stage, eventCount));

  const service = { url: stage.url, accessKey, secret };
  const reader = startHelper<ReaderJob, ReaderResult>("reader.ts");
  const pull = async (cursor: string | null, wanted: number) =>
    (await reader.prepare({ ...service, kind: "pull", cursor, limit, wanted }))();
  const rates: number[] = [];
  let cursor: string | null = null;
  // The first is the warm one.
  for (let number = 0; number <= rounds; number += 1) {
    const read = await pull(null, eventCount);
    if (number > 0) rates.push(read.count / read.seconds);
    cursor = read.cursor;
  }

  const redemptions = tillsPerSecond * seconds * 2;
  const deck = await stage.makeDeck(redemptions);
  const worker = await stage.startWorker();
  const loader = startLoader();
  const loading = async () => {
    await loadAt(stage, deck, loader, tillsPerSecond, seconds);
    await loadAt(stage, deck, loader, tillsPerSecond, seconds);
  };
  const [{ lags }] = await Promise.all([pull(cursor, redemptions), loading()]);
  loader.end();
  reader.end();
  await worker.stop();
  await stage.close();
  return {
    figures: [
      { name: `pulled at limit ${limit}`, value: median(rates), unit: "events/s", aim: { atLeast: 20_000 } },
      { name: "sequenced", value: sequencedPerSecond, unit: "events/s" },
      { name: `lag at ${tillsPerSecond} redemptions/s: p50`, value: quantile(lags, 0.5), unit: "ms" },
      { name: `lag at ${tillsPerSecond} redemptions/s: p99`, value: quantile(lags, 0.99), unit: "ms" },
    ],
    details: { rates },
  };
}

// Seconds that a worker takes from its start until so many events have their places and their business days.
export async function untilSequenced(stage: Stage, count: number): Promise<number> {
  const since = performance.now();
  const worker = await stage.startWorker();
  await until(`${count} sequenced events`, async () => {
    const [row] = await stage.owner.rows<{ sequenced: number }>(
      "select coalesce(sum(f.last_position), 0)::int as sequenced from core.feed f",
    );
    return row!.sequenced >= count ? row : null;
  });
  const seconds = (performance.now() - since) / 1_000;
  await worker.stop();
  return seconds;
}

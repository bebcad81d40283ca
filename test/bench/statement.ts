// statement: a business day of many entries, from the moment at which it is over until its files can be downloaded, and the
// download.
import { daySeconds, noonOffset, zoneOf } from "../support/business-days.ts";
import { untilSequenced } from "./feed.ts";
import type { Report } from "./figures.ts";
import { fillRedemptions } from "./fill.ts";
import { startHelper } from "./child-process.ts";
import { difference, readCosts } from "./measure.ts";
import type { ReaderJob, ReaderResult } from "./reader.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openStage, type Stage } from "./environment.ts";
import { accessKey, party, secret } from "./tenant.ts";
import { until } from "./wait-until.ts";

const fullCount = 1_000_000;

export async function benchStatement(server: Server, { entryCount }: Settings): Promise<Report> {
  const stage = await openStage(server);
  // Where it is noon today or was yesterday: moved a day to the east it is noon tomorrow, and the day is over.
  const offset = noonOffset() > 0 ? noonOffset() - daySeconds : noonOffset();
  await setZone(stage, zoneOf(offset));
  await stage.makeDeck(entryCount);
  await fillRedemptions(stage);
  await untilSequenced(stage, entryCount);

  const worker = await stage.startWorker();
  const overAt = performance.now();
  await setZone(stage, zoneOf(offset + daySeconds));
  const date = await untilReady(stage);
  const closedSeconds = (performance.now() - overAt) / 1_000;

  const reader = startHelper<ReaderJob, ReaderResult>("reader.ts");
  const target = `/v1/reconciliations/${date}/detail?distributor=${party}`;
  const go = await reader.prepare({ kind: "download", url: stage.url, accessKey, secret, target });
  const before = await readCosts(stage.measured);
  const { count, bytes, seconds } = await go();
  const costs = difference(before, await readCosts(stage.measured));
  reader.end();
  await worker.stop();
  await stage.close();
  if (count !== entryCount) throw new Error(`${count} of ${entryCount} entries were downloaded`);
  const aim = entryCount === fullCount ? { aim: { atMost: 30 } } : {};
  return {
    figures: [
      { name: `${entryCount} entries: closed and ready`, value: closedSeconds, unit: "s" },
      { name: `${entryCount} entries: downloaded`, value: seconds, unit: "s", ...aim },
      { name: "downloaded", value: count / seconds, unit: "entries/s" },
      ...[
        { name: "CPU of postgres", spent: costs.postgresCpu },
        { name: "CPU of serve", spent: costs.serveCpu },
      ].flatMap(({ name, spent }) =>
        spent === null ? [] : [{ name, value: (spent * 1e6) / count, unit: "µs an entry" }],
      ),
      { name: "size", value: bytes / 2 ** 20, unit: "MiB" },
    ],
  };
}

async function setZone(stage: Stage, zone: string): Promise<void> {
  await stage.owner.rows("update core.party set time_zone = $2 where external_id = $1", [party, zone]);
}

function untilReady(stage: Stage): Promise<string> {
  return until("the statement", async () => {
    const [row] = await stage.owner.rows<{ date: string }>(
      "select s.business_date::text as date from core.statement s where s.ready_at is not null and s.entry_count > 0 order by s.business_date limit 1",
    );
    return row?.date ?? null;
  });
}

// statement: the time from the end of a business day with many entries until its files are ready, and the time of the
// download.
import { daySeconds, noonOffset, zoneOf } from "../support/business-days.ts";
import { untilSequenced } from "./feed.ts";
import type { Report } from "./results.ts";
import { fillRedemptions } from "./fill.ts";
import { startChildProcess } from "./child-process.ts";
import { difference, readCosts } from "./measure.ts";
import type { ReaderJob, ReaderResult } from "./reader.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openEnvironment, patience, type Environment } from "./environment.ts";
import { accessKey, party, secret } from "./tenant.ts";
import { waitUntil } from "../support/wait-until.ts";

const fullCount = 1_000_000;

export async function benchStatement(server: Server, { entryCount }: Settings): Promise<Report> {
  const environment = await openEnvironment(server);
  // A time zone where it is noon, today or yesterday. A day further east it is noon of the next day, so the day is
  // over.
  const offset = noonOffset() > 0 ? noonOffset() - daySeconds : noonOffset();
  await setZone(environment, zoneOf(offset));
  await environment.makePool(entryCount);
  await fillRedemptions(environment);
  await untilSequenced(environment, entryCount);

  const worker = await environment.startWorker();
  const overAt = performance.now();
  await setZone(environment, zoneOf(offset + daySeconds));
  const date = await untilReady(environment);
  const closedSeconds = (performance.now() - overAt) / 1_000;

  const reader = startChildProcess<ReaderJob, ReaderResult>("reader.ts");
  const target = `/v1/reconciliations/${date}/detail?distributor=${party}`;
  const go = await reader.prepare({ kind: "download", url: environment.url, accessKey, secret, target });
  const before = await readCosts(environment.measured);
  const { count, bytes, seconds } = await go();
  const costs = difference(before, await readCosts(environment.measured));
  reader.end();
  await worker.stop();
  await environment.close();
  if (count !== entryCount) throw new Error(`downloaded ${count} of ${entryCount} entries`);
  const aim = entryCount === fullCount ? { aim: { atMost: 30 } } : {};
  return {
    results: [
      { name: `${entryCount} entries: closed and ready`, value: closedSeconds, unit: "s" },
      { name: `${entryCount} entries: downloaded`, value: seconds, unit: "s", ...aim },
      { name: "downloaded", value: count / seconds, unit: "entries/s" },
      ...[
        { name: "CPU of its sessions", spent: costs.cpu?.sessions },
        { name: "CPU of serve", spent: costs.cpu?.serve },
      ].flatMap(({ name, spent }) =>
        spent === undefined ? [] : [{ name, value: (spent * 1e6) / count, unit: "µs per entry" }],
      ),
      { name: "size", value: bytes / 2 ** 20, unit: "MiB" },
    ],
  };
}

async function setZone(environment: Environment, zone: string): Promise<void> {
  await environment.owner.rows("update core.party set time_zone = $2 where external_id = $1", [party, zone]);
}

function untilReady(environment: Environment): Promise<string> {
  const findDate = async (): Promise<string | null> => {
    const [row] = await environment.owner.rows<{ date: string }>(
      `select s.business_date::text as date from core.statement s
       where s.ready_at is not null and s.entry_count > 0 order by s.business_date limit 1`,
    );
    return row?.date ?? null;
  };
  return waitUntil("the statement", findDate, patience);
}

// recovery: what a longer checkpoint_timeout saves and costs. For each value: the write-ahead log and the full page
// images of redemptions at full rate, then the seconds from kill -9 of the database server until it answers again.
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../../src/database/connect.ts";
import { createHttp } from "./contenders.ts";
import { makeCheckpoint, openEnvironment, patience, untilCaughtUp, type Environment } from "./environment.ts";
import { difference, readCosts } from "./measure.ts";
import type { Report, Row } from "./results.ts";
import { startServer, type Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { waitUntil } from "../support/wait-until.ts";

const sliceSeconds = 5;
const noClock = { begin: async () => {}, end: async () => {} };

export async function benchRecovery({ postmasterPid }: Server, settings: Settings): Promise<Report> {
  if (postmasterPid === null) throw new Error("recovery kills its server, so it runs without BENCH_DATABASE_URL");
  const rows: Row[] = [];
  for (const timeout of settings.checkpointTimeouts) {
    const server = await startServer(null, { checkpoint_timeout: `${timeout}s` });
    try {
      rows.push({ name: `checkpoint_timeout ${timeout} s`, values: await measure(server, settings) });
    } finally {
      await server.stop();
    }
  }
  return { results: [], tables: { recovery: rows } };
}

async function measure(server: Server, { coupons, loadSeconds }: Settings): Promise<Row["values"]> {
  const environment = await openEnvironment(server);
  const pool = await environment.makePool(coupons);
  const worker = await environment.startWorker();
  const load = createHttp(environment, pool);
  await makeCheckpoint(environment);
  let [count, walBytes, fullPageImages] = [0, 0, 0];
  for (const endAt = performance.now() + loadSeconds * 1_000; performance.now() < endAt;) {
    // Mints more coupons when all are used, which does not count.
    const go = await load.prepare(Math.min(sliceSeconds, loadSeconds));
    const before = await readCosts(environment.measured);
    count += (await go(noClock)).count;
    await untilCaughtUp(environment);
    const costs = difference(before, await readCosts(environment.measured));
    walBytes += costs.walBytes;
    fullPageImages += costs.fullPageImages;
  }
  load.end();
  const [row] = await environment.owner.rows<{ bytes: number }>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), c.redo_lsn)::float8 as bytes
     from pg_control_checkpoint() c`,
  );
  const seconds = await killServer(server);
  await waitUntil("the worker's and the service's new connections", () => isReady(environment), patience);
  await worker.stop();
  await environment.close();
  const mebibytes = row!.bytes / 2 ** 20;
  return {
    redemptions: count,
    "WAL B": walBytes / count,
    "page images": fullPageImages / count,
    "log to replay MiB": mebibytes,
    "ready after s": seconds,
    "MiB/s": mebibytes / seconds,
  };
}

// Returns the seconds until a new connection is answered. The embedded server is started again a quarter of a second
// after its end.
async function killServer({ address, postmasterPid }: Server): Promise<number> {
  const killedAt = performance.now();
  process.kill(postmasterPid!, "SIGKILL");
  await waitUntil(
    "the server to answer again",
    async () => {
      await sleep(20);
      const database = connect(address, { name: "coupon bench", max: 1 });
      try {
        return (await database.rows("select")).length === 1;
      } catch {
        return false;
      } finally {
        await database.end();
      }
    },
    patience,
  );
  return (performance.now() - killedAt) / 1_000;
}

async function isReady({ url }: Environment): Promise<boolean> {
  return (await fetch(`${url}/readyz`)).ok;
}

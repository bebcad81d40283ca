// mint: coupons per second of the real worker, compared with a bare insert of as many rows of the same width into the
// same table with its indexes and constraints. Each gets a new database. Also measures what tills notice of a mint.
import { startLoader } from "./contenders.ts";
import { openSession } from "../../src/database/connect.ts";
import { joined, median, quantile, type Report } from "./results.ts";
import { loadAt } from "./latency.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openEnvironment, type Environment } from "./environment.ts";

const mostRounds = 3;
const tillsPerSecond = 200;
// Roughly how many coupons are minted while the tills are measured.
const mintPerSecond = 50_000;

export async function benchMint(server: Server, settings: Settings): Promise<Report> {
  const { mintCount, rounds } = settings;
  const rates: { worker: number[]; bare: number[] } = { worker: [], bare: [] };
  for (let number = 0; number < Math.min(rounds, mostRounds); number += 1) {
    for (const [list, measure] of [
      [rates.worker, mintByWorker],
      [rates.bare, insertBare],
    ] as const) {
      const environment = await openEnvironment(server);
      list.push(mintCount / (await measure(environment, mintCount)));
      await environment.close();
    }
  }
  const [worker, bare] = [median(rates.worker), median(rates.bare)];
  const tills = await watchTills(server, settings);
  return {
    results: [
      { name: `mint of ${mintCount}`, value: worker, unit: "/s", aim: { atLeast: 40_000 } },
      { name: "bare insert", value: bare, unit: "/s" },
      { name: "mint / bare insert", value: worker / bare, unit: "", aim: { atLeast: 0.35 } },
      { name: `p99 at ${tillsPerSecond}/s without a mint`, value: tills.without, unit: "ms" },
      { name: `p99 at ${tillsPerSecond}/s during a mint`, value: tills.during, unit: "ms" },
      { name: "p99 during / without", value: tills.during / tills.without, unit: "", aim: { atMost: 2 } },
      { name: `mint during ${tillsPerSecond}/s`, value: tills.minted, unit: "/s" },
    ],
    details: rates,
  };
}

// Returns the seconds from the submission to the last coupon, by the database's clock. The worker is already running.
async function mintByWorker(environment: Environment, count: number): Promise<number> {
  const worker = await environment.startWorker();
  const batch = await environment.submit(count);
  await environment.untilMinted(batch);
  await worker.stop();
  const [row] = await environment.owner.rows<{ seconds: number }>(
    `select extract(epoch from b.completed_at - b.created_at)::float8 as seconds
     from core.batch b
     where b.external_id = $1`,
    [batch],
  );
  return row!.seconds;
}

// Returns the seconds of the insert and its commit. IDs ascend and hashes are random, as in the service. Completing the
// batch is needed for the invariants and is not measured.
async function insertBare(environment: Environment, count: number): Promise<number> {
  const batch = await environment.submit(count);
  const session = openSession(environment.address, { name: "coupon bench", role: "coupon_owner" });
  const timed = async (act: () => Promise<unknown>) => {
    const since = performance.now();
    await act();
    return (performance.now() - since) / 1_000;
  };
  await session.run("begin");
  const inserted = await timed(() =>
    session.rows(
      `insert into core.coupon (tenant_id, batch_id, number, coupon_id, lookup_hash, valid_from, valid_to, created_at)
     select b.tenant_id, b.batch_id, n, ('018f0000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
            gen_random_uuid(), b.valid_from, b.valid_to, now()
     from core.batch b
     cross join generate_series(1, $2::int) n
     where b.external_id = $1`,
      [batch, count],
    ),
  );
  await session.rows(
    `update core.batch b
     set minted_count = b.total_count, status = 'COMPLETED', completed_at = clock_timestamp()
     where b.external_id = $1`,
    [batch],
  );
  await session.rows(
    `select rules.write_event(b.tenant_id, rules.make_id(), 'batch.generated', b.maker_id, b.batch_id, null,
                               clock_timestamp())
     from core.batch b where b.external_id = $1`,
    [batch],
  );
  const committed = await timed(() => session.run("commit"));
  await session.end();
  return inserted + committed;
}

async function watchTills(server: Server, { seconds, rounds }: Settings) {
  const environment = await openEnvironment(server);
  const count = Math.min(rounds, mostRounds);
  const pool = await environment.makePool(tillsPerSecond * seconds * (2 * count + 1));
  const worker = await environment.startWorker();
  const loader = startLoader();
  const load = () => loadAt(environment, pool, loader, tillsPerSecond, seconds);
  const [without, during, minted]: [Float64Array[], Float64Array[], number[]] = [[], [], []];
  await load();
  for (let number = 0; number < count; number += 1) {
    without.push(await load());
    const since = performance.now();
    const batch = await environment.submit(mintPerSecond * seconds);
    during.push(await load());
    const [row] = await environment.owner.rows<{ minted_count: number }>(
      "select b.minted_count from core.batch b where b.external_id = $1",
      [batch],
    );
    minted.push(row!.minted_count / ((performance.now() - since) / 1_000));
    await environment.untilMinted(batch);
  }
  loader.end();
  await worker.stop();
  await environment.close();
  return { without: quantile(joined(without), 0.99), during: quantile(joined(during), 0.99), minted: median(minted) };
}

// mint: coupons a second of the real worker, beside a bare insert of as many rows into the same table, with its indexes and
// constraints and of the same width, each into a database of its own; and what tills notice of a mint.
import { startLoader } from "./contenders.ts";
import { openSession } from "../../src/database/connect.ts";
import { joined, median, quantile, type Report } from "./figures.ts";
import { loadAt } from "./latency.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openStage, type Stage } from "./environment.ts";

const mostRounds = 3;
const tillsPerSecond = 200;
// About what is minted while the tills are looked at.
const mintPerSecond = 50_000;

export async function benchMint(server: Server, settings: Settings): Promise<Report> {
  const { mintCount, rounds } = settings;
  const rates: { worker: number[]; bare: number[] } = { worker: [], bare: [] };
  for (let number = 0; number < Math.min(rounds, mostRounds); number += 1) {
    for (const [list, measure] of [
      [rates.worker, mintByWorker],
      [rates.bare, insertBare],
    ] as const) {
      const stage = await openStage(server);
      list.push(mintCount / (await measure(stage, mintCount)));
      await stage.close();
    }
  }
  const [worker, bare] = [median(rates.worker), median(rates.bare)];
  const tills = await watchTills(server, settings);
  return {
    figures: [
      { name: `mint of ${mintCount}`, value: worker, unit: "/s", aim: { atLeast: 40_000 } },
      { name: "bare insert", value: bare, unit: "/s" },
      { name: "mint / bare insert", value: worker / bare, unit: "", aim: { atLeast: 0.35 } },
      { name: `p99 at ${tillsPerSecond}/s without a mint`, value: tills.without, unit: "ms" },
      { name: `p99 at ${tillsPerSecond}/s during a mint`, value: tills.during, unit: "ms" },
      { name: "p99 during / without", value: tills.during / tills.without, unit: "", aim: { atMost: 2 } },
      { name: `mint beside ${tillsPerSecond}/s`, value: tills.minted, unit: "/s" },
    ],
    details: rates,
  };
}

// Seconds from the submission to the last coupon, by the database's clock; the worker is there before.
async function mintByWorker(stage: Stage, count: number): Promise<number> {
  const worker = await stage.startWorker();
  const batch = await stage.submit(count);
  await stage.untilMinted(batch);
  await worker.stop();
  const [row] = await stage.owner.rows<{ seconds: number }>(
    "select extract(epoch from b.completed_at - b.created_at)::float8 as seconds from core.batch b where b.external_id = $1",
    [batch],
  );
  return row!.seconds;
}

// Seconds of the insert and of its commit. Ids ascend as those of the service do, hashes are as random. What completes the batch, so
// that the laws hold, is not counted.
async function insertBare(stage: Stage, count: number): Promise<number> {
  const batch = await stage.submit(count);
  const session = openSession(stage.address, { name: "coupon bench", role: "coupon_owner" });
  const timed = async (act: () => Promise<unknown>) => {
    const since = performance.now();
    await act();
    return (performance.now() - since) / 1_000;
  };
  await session.run("begin");
  const inserted = await timed(() =>
    session.rows(
      `insert into core.coupon (tenant_id, batch_id, number, coupon_id, lookup_hash, valid_from, valid_to, created_at)
     select b.tenant_id, b.batch_id, n, ('018f0000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, gen_random_uuid(),
            b.valid_from, b.valid_to, now()
     from core.batch b
     cross join generate_series(1, $2::int) n
     where b.external_id = $1`,
      [batch, count],
    ),
  );
  await session.rows(
    "update core.batch b set minted_count = b.total_count, status = 'COMPLETED', completed_at = clock_timestamp() where b.external_id = $1",
    [batch],
  );
  await session.rows(
    `select rules.write_event(b.tenant_id, rules.make_id(), 'batch.generated', b.maker_id, b.batch_id, null, clock_timestamp())
     from core.batch b where b.external_id = $1`,
    [batch],
  );
  const committed = await timed(() => session.run("commit"));
  await session.end();
  return inserted + committed;
}

async function watchTills(server: Server, { seconds, rounds }: Settings) {
  const stage = await openStage(server);
  const count = Math.min(rounds, mostRounds);
  const deck = await stage.makeDeck(tillsPerSecond * seconds * (2 * count + 1));
  const worker = await stage.startWorker();
  const loader = startLoader();
  const load = () => loadAt(stage, deck, loader, tillsPerSecond, seconds);
  const [without, during, minted]: [Float64Array[], Float64Array[], number[]] = [[], [], []];
  await load();
  for (let number = 0; number < count; number += 1) {
    without.push(await load());
    const since = performance.now();
    const batch = await stage.submit(mintPerSecond * seconds);
    during.push(await load());
    const [row] = await stage.owner.rows<{ minted_count: number }>(
      "select b.minted_count from core.batch b where b.external_id = $1",
      [batch],
    );
    minted.push(row!.minted_count / ((performance.now() - since) / 1_000));
    await stage.untilMinted(batch);
  }
  loader.end();
  await worker.stop();
  await stage.close();
  return { without: quantile(joined(without), 0.99), during: quantile(joined(during), 0.99), minted: median(minted) };
}

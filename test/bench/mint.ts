// mint: coupons per second of the real worker, compared with a bare insert of as many rows of the same width into the
// same table with its indexes and constraints, in another database. Their rounds alternate. The time until a batch is
// COMPLETED has two parts: until a worker takes it, and until the last coupon is committed. Also measures what tills
// notice of a mint.
import { startLoader } from "./contenders.ts";
import { openSession } from "../../src/database/connect.ts";
import { joined, median, quantile, type Report, type Row } from "./results.ts";
import { loadAt } from "./latency.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openEnvironment, patience, type Environment } from "./environment.ts";
import { waitUntil } from "../support/wait-until.ts";

const mostRounds = 3;
const tillsPerSecond = 200;
// Roughly how many coupons are minted while the tills are measured.
const mintPerSecond = 50_000;
// Polling at this pace costs the database 2 % of a core.
const pollMs = 5;

// Seconds.
type Mint = { waiting: number; working: number };
type Sample = { count: number; mint: Mint; bare: number };

export async function benchMint(server: Server, settings: Settings): Promise<Report> {
  const samples = await compareMints(server, settings);
  const tills = await watchTills(server, settings);
  const rows = settings.mintCounts.map((count) => describe(count, samples));
  const aims = rows.flatMap(({ name, values }) => [
    { name: `mint / bare insert, ${name}`, value: values["of the bare insert"]!, unit: "", aim: { atLeast: 0.7 } },
  ]);
  return {
    tables: { mint: rows },
    results: [
      ...aims,
      { name: `p99 at ${tillsPerSecond}/s without a mint`, value: tills.without, unit: "ms" },
      { name: `p99 at ${tillsPerSecond}/s during a mint`, value: tills.during, unit: "ms" },
      { name: "p99 during / without", value: tills.during / tills.without, unit: "", aim: { atMost: 2 } },
      { name: `mint during ${tillsPerSecond}/s`, value: tills.minted, unit: "/s" },
    ],
    details: { samples },
  };
}

// The first round is a warm-up.
async function compareMints(server: Server, { mintCounts, rounds }: Settings): Promise<Sample[]> {
  const [minting, inserting] = [await openEnvironment(server), await openEnvironment(server)];
  const worker = await minting.startWorker();
  const samples: Sample[] = [];
  for (let number = 0; number <= Math.min(rounds, mostRounds); number += 1) {
    for (const count of mintCounts) {
      const sample = { count, mint: await mintByWorker(minting, count), bare: await insertBare(inserting, count) };
      if (number > 0) samples.push(sample);
    }
  }
  await worker.stop();
  await minting.close();
  await inserting.close();
  return samples;
}

function describe(count: number, samples: readonly Sample[]): Row {
  const list = samples.filter((sample) => sample.count === count);
  const of = (read: (sample: Sample) => number) => median(list.map(read));
  const whole = ({ mint }: Sample) => mint.waiting + mint.working;
  return {
    name: `batch of ${count}`,
    values: {
      "/s": count / of(whole),
      "bare insert /s": count / of(({ bare }) => bare),
      "of the bare insert": of(({ bare }) => bare) / of(whole),
      "until COMPLETED ms": of(whole) * 1_000,
      "waiting ms": of(({ mint }) => mint.waiting) * 1_000,
      "working ms": of(({ mint }) => mint.working) * 1_000,
      "working / bare": of(({ mint }) => mint.working) / of(({ bare }) => bare),
    },
  };
}

// From the answer to the submission, as the maker sees it. A batch that a worker holds has a lease or is complete.
async function mintByWorker(environment: Environment, count: number): Promise<Mint> {
  const batch = await environment.submit(count);
  const acceptedAt = performance.now();
  const reach = async (what: string, condition: string): Promise<number> => {
    const text = `select from core.batch b where b.external_id = $1 and ${condition}`;
    const isReached = async () => (await environment.owner.rows(text, [batch])).length > 0;
    await waitUntil(`${batch} to be ${what}`, isReached, { ...patience, everyMs: pollMs });
    return performance.now();
  };
  const takenAt = await reach("taken", "(b.mint_lease_until is not null or b.status <> 'PENDING')");
  const completedAt = await reach("minted", "b.status <> 'PENDING'");
  return { waiting: (takenAt - acceptedAt) / 1_000, working: (completedAt - takenAt) / 1_000 };
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
     select b.tenant_id, b.batch_id, n,
            format('018f0000-%s-7000-8000-%s', lpad(to_hex(b.batch_id), 4, '0'), lpad(to_hex(n), 12, '0'))::uuid,
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

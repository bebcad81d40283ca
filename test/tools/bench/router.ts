// router: what a redemption costs through a router, beside the same redemption with the database called directly. Both
// sides have the same database and worker, each has a `serve` of its own, and their rounds alternate. Each figure is
// the median of its rounds, and a ratio is the median of the ratios of each round. Costs include the sequencer.
import { openPool } from "./coupons.ts";
import { settle, type Environment, type Run } from "./environment.ts";
import { openLoader, type Load } from "./load.ts";
import { median, quantile, type Row } from "./measure.ts";
import { openRouter, type Spent } from "./routed.ts";

type Round = Load & { spent: Spent; group: number };

// Of the size, what a round sends, by the number of connections. Calls on 96 connections form groups of about 30.
const programs = [
  { connections: 96, share: 1 },
  { connections: 8, share: 0.5 },
  { connections: 1, share: 0.25 },
];

export async function benchRouter({ open, server, size, rounds }: Run): Promise<Row[]> {
  const direct = await open();
  const { routed, measure, end } = await openRouter(server, [direct]);
  const compared = programs.map(({ connections, share }) => ({
    connections,
    count: Math.ceil(size * share),
    sides: [
      { name: "direct", environment: direct, rounds: [] as Round[] },
      { name: "router", environment: routed[0]!, rounds: [] as Round[] },
    ],
  }));
  const firstRound = rounds === 1 ? 1 : -1;
  const perRound = compared.reduce((sum, { count }) => sum + count * 2, 0);
  const pool = await openPool(direct, perRound * (rounds + 1 - firstRound));
  const loader = openLoader();

  try {
    // Before the measured rounds, one without and one with the statistics of the tables.
    for (let number = firstRound; number <= rounds; number += 1) {
      if (number === 0) await settle(direct);
      for (const { connections, count, sides } of compared)
        for (const { environment, rounds } of sides) {
          const send = await loader.prepare(environment, await pool.draw(count), { connections });
          const since = await readClock(environment);
          const round = await measure([environment], send);
          if (number > 0) rounds.push({ ...round, group: await readGroup(environment, since) });
        }
    }
  } finally {
    await loader.end();
    await end();
  }
  return compared.flatMap(({ connections, sides }) =>
    sides.map(({ name, rounds }) => describe(`${name}, ${nameLoad(connections)}`, rounds, sides[0]!.rounds)),
  );
}

const nameLoad = (connections: number) => (connections === 1 ? "one connection" : `${connections} connections`);

function describe(name: string, rounds: Round[], direct: Round[]): Row {
  const of = (read: (round: Round, index: number) => number) => median(rounds.map(read));
  const micros = (read: (spent: Spent) => number) =>
    of(({ spent, latencies }) => (read(spent) / latencies.length) * 1e6);
  const sum = ({ cells, router, serve }: Spent) => cells + router + serve;
  const isDirect = rounds === direct;
  /** How much more than the direct round beside it. */
  const more = (share: number) =>
    isDirect
      ? NaN
      : of(({ latencies }, index) => quantile(latencies, share) - quantile(direct[index]!.latencies, share));
  return {
    name,
    "mean group": of(({ group }) => group),
    "calls/s": of(({ latencies, seconds }) => latencies.length / seconds),
    "CPU, µs": micros(sum),
    "of direct": isDirect ? NaN : of(({ spent }, index) => sum(spent) / sum(direct[index]!.spent)),
    "cell, µs": micros(({ cells }) => cells),
    "router, µs": isDirect ? NaN : micros(({ router }) => router),
    "serve, µs": micros(({ serve }) => serve),
    "p50 ms": of(({ latencies }) => quantile(latencies, 0.5)),
    "p99 ms": of(({ latencies }) => quantile(latencies, 0.99)),
    "more p50 ms": more(0.5),
    "more p99 ms": more(0.99),
  };
}

async function readClock({ database }: Environment): Promise<string> {
  const [row] = await database.rows<{ now: string }>("select clock_timestamp()::text as now");
  return row!.now;
}

/** The mean number of redemptions that one transaction has written since then. */
async function readGroup({ database }: Environment, since: string): Promise<number> {
  const [row] = await database.rows<{ group: number }>(
    `select count(*)::float8 / count(distinct xmin::text) as group
     from core.redemption
     where started_at >= $1::text::timestamptz`,
    [since],
  );
  return row!.group;
}

// cells: what a second cell adds. Two cells are behind a router, each with a tenant, and each may use the same small
// share of a core. Rounds with load on one of them and with load on both alternate. Each figure is the median of its
// rounds, and a ratio is the median of the ratios of each round. Costs include the sequencers.
import { startTemporaryServer } from "../../support/temporary-server.ts";
import { openPool } from "./coupons.ts";
import { openEnvironment, settle, type Environment, type Run } from "./environment.ts";
import { openLoader, type Load } from "./load.ts";
import { listPostgres, median, type Row } from "./measure.ts";
import { openQuota, type Quota } from "./quota.ts";
import { openRouter, type Spent } from "./routed.ts";

type Round = { rate: number; micros: number; spent: Spent; count: number };

const share = 0.1;
const connections = 64;

export async function benchCells({ open, server, size, rounds }: Run): Promise<Row[]> {
  const first = await open();
  // An existing server has both cells.
  const other = server.isOwn ? await startTemporaryServer("coupon-bench-", { max_connections: "200" }) : null;
  const on = { address: other?.address ?? server.address, folder: server.folder };
  const second = await openEnvironment(on, { cell: 2, masterKeyText: first.masterKeyText });
  const { routed, measure, end } = await openRouter(server, [first, second]);
  const firstRound = rounds === 1 ? 1 : -1;
  const pools = await Promise.all(routed.map((each) => openPool(each, size * 2 * (rounds + 1 - firstRound))));
  const loaders = routed.map(() => openLoader());
  let quotas: Quota[] | null = null;

  async function load(count: number): Promise<Round> {
    const chosen = routed.slice(0, count);
    const sends = await Promise.all(
      chosen.map(async (each, index) => loaders[index]!.prepare(each, await pools[index]!.draw(size), { connections })),
    );
    const { loads, spent } = await measure(chosen, async () => ({
      loads: await Promise.all(sends.map((send) => send())),
    }));
    const total = size * count;
    const micros = ((spent.cells + spent.router + spent.serve) / total) * 1e6;
    return { rate: total / Math.max(...loads.map(({ seconds }: Load) => seconds)), micros, spent, count: total };
  }

  const [one, two]: [Round[], Round[]] = [[], []];
  try {
    for (let number = firstRound; number <= rounds; number += 1) {
      if (number === 0) await Promise.all([first, second].map(settle));
      // After the warm-up, because new connections and empty caches take much CPU.
      if (number === 1 && other !== null) quotas = await limit([first, second]);
      const [alone, both] = [await load(1), await load(2)];
      if (number < 1) continue;
      one.push(alone);
      two.push(both);
    }
  } finally {
    quotas?.forEach((quota) => quota.remove());
    await Promise.all(loaders.map((loader) => loader.end()));
    await end();
  }
  await second.close();
  await other?.stop();
  if (quotas === null) console.log("cells: no CPU quota is possible here, so the rate says nothing about two cells");
  const rule = quotas === null ? "without a quota" : `with ${share} of a core each`;
  return [
    describe(`one cell, ${rule}`, one),
    describe(`two cells, ${rule}`, two, { rounds: one, isLimited: quotas !== null }),
  ];
}

/** null: it is not possible here. */
async function limit(environments: Environment[]): Promise<Quota[] | null> {
  const quotas: Quota[] = [];
  for (const [index, { database }] of environments.entries()) {
    const quota = openQuota(`cell${index + 1}`, share);
    if (quota === null) {
      quotas.forEach((opened) => opened.remove());
      return null;
    }
    quotas.push(quota);
    const [backend] = await database.rows<{ pid: number }>("select pg_backend_pid() as pid");
    quota.add(listPostgres(backend!.pid));
  }
  return quotas;
}

/** isLimited: only with a quota do two cells have more CPU than one. */
function describe(name: string, rounds: Round[], beside?: { rounds: Round[]; isLimited: boolean }): Row {
  const of = (read: (round: Round, index: number) => number) => median(rounds.map(read));
  const ofEach = (key: keyof Spent) => of(({ spent, count }) => (spent[key] / count) * 1e6);
  const ratio = (key: "rate" | "micros") =>
    beside === undefined ? NaN : of((round, index) => round[key] / beside.rounds[index]![key]);
  return {
    name,
    "redemptions/s": of(({ rate }) => rate),
    "of one cell": beside?.isLimited ? ratio("rate") : NaN,
    "CPU, µs": of(({ micros }) => micros),
    "CPU of one cell": ratio("micros"),
    "cells, µs": ofEach("cells"),
    "router, µs": ofEach("router"),
    "serve, µs": ofEach("serve"),
  };
}

// redemptions: rate, latency and costs of redemptions over HTTP, beside what a user would compare them with: the floor,
// which is what this machine and PostgreSQL can do at best, a careful service written by hand, and another build. The
// rounds of all rows alternate, so that other load on the machine affects all of them. Each figure is the median of its
// rounds, and a ratio is the median of the ratios of each round. Costs include the sequencer: they are read when a
// round's events are in the feed.
import { readFileSync } from "node:fs";
import path from "node:path";
import { formatUrl } from "../../../src/config/database-address.ts";
import { deriveKey, subKeysOf } from "../../../src/crypto/keys.ts";
import { openSession } from "../../../src/database/connect.ts";
import { startLoggedProgram } from "../../support/logged-program.ts";
import { openPool, type Pool } from "./coupons.ts";
import { openEnvironment, settle, type Environment, type Run, type Server } from "./environment.ts";
import { openFloors } from "./floor.ts";
import { openLoader, type Load, type LoadOptions } from "./load.ts";
import { costsSince, median, quantile, readCosts, type Costs, type Row } from "./measure.ts";

type Kind = "HTTP" | "other build" | "hand-written" | "floor" | "floor of 30";
type Program = LoadOptions & { kind: Kind; count: number };
type Side = {
  environment: Environment;
  /** Resolves when so many calls are ready; calling the returned function sends them. */
  prepare(count: number, options: LoadOptions): Promise<() => Promise<Load>>;
  end?(): Promise<unknown>;
};
type Round = Load & { costs: Costs };
type Measured = { program: Program; rounds: Round[] };

// Of the size, what a round sends, by the number of connections. So all rounds take about four seconds.
const shares: Record<Kind, Record<number, number>> = {
  HTTP: { 64: 1, 16: 0.6, 8: 0.4, 4: 0.24, 1: 0.12 },
  "other build": { 64: 1, 16: 0.6, 8: 0.4, 4: 0.24, 1: 0.12 },
  "hand-written": { 64: 0.4, 8: 0.36, 1: 0.12 },
  floor: { 64: 3.2, 8: 2.4, 1: 0.56 },
  "floor of 30": { 64: 8 },
};
const usualConnections = [64, 8, 1];
const fixedRate = { connections: 64, perSecond: 500, share: 0.08 };

export async function benchRedemptions({ open, server, size, rounds, against }: Run): Promise<Row[]> {
  // Plans for empty tables are bad, and the first change of a page after a checkpoint logs the whole page. So a warm-up
  // round comes before fresh statistics and a checkpoint, and another one after them. A single round comes alone, for
  // it only shows that the bench works.
  const firstRound = rounds === 1 ? 1 : -1;
  const all = listPrograms(size, against !== undefined);
  const ofRound = all.filter(({ kind }) => kind === "HTTP" || kind === "hand-written");
  const needed = ofRound.reduce((sum, { count }) => sum + count, 0) * (rounds + 1 - firstRound);
  const sides = await openSides(await open(), { server, size, against, needed });
  const measured = all
    .filter(({ kind }) => sides[kind] !== undefined)
    .map((program): Measured => ({ program, rounds: [] }));

  for (let number = firstRound; number <= rounds; number += 1) {
    if (number === 0) for (const side of [sides.HTTP, sides["other build"]]) if (side) await settle(side.environment);
    for (const { program, rounds } of measured) {
      const round = await runRound(sides[program.kind]!, program);
      if (number > 0) rounds.push(round);
    }
  }
  for (const { end } of Object.values(sides)) await end?.();
  return measured.map((row) => describe(row, measured));
}

/** Programs with the same number of connections follow each other, because they are compared. */
function listPrograms(size: number, hasOtherBuild: boolean): Program[] {
  const connections = hasOtherBuild ? [64, 16, 8, 4, 1] : usualConnections;
  const kinds = Object.keys(shares) as Kind[];
  const { share, ...rate } = fixedRate;
  const closed = connections.flatMap((connections) =>
    kinds.flatMap((kind): Program[] => {
      const share = shares[kind][connections];
      return share === undefined ? [] : [{ kind, connections, count: Math.ceil(size * share) }];
    }),
  );
  return [...closed, { kind: "HTTP", ...rate, count: Math.ceil(size * share) }];
}

type Sides = Partial<Record<Kind, Side>>;
type SideOptions = Pick<Run, "server" | "size" | "against"> & { needed: number };

/** `needed`: how many coupons each database gets. */
async function openSides(environment: Environment, { server, size, against, needed }: SideOptions): Promise<Sides> {
  const loader = openLoader();
  const openService = (environment: Environment, pool: Pool): Side => ({
    environment,
    prepare: async (count, options) => loader.prepare(environment, await pool.draw(count), options),
  });
  const pool = await openPool(environment, needed);
  const sides: Sides = { HTTP: { ...openService(environment, pool), end: loader.end } };
  const handWritten = await startHandWritten(environment, server);
  sides["hand-written"] = { ...openService(handWritten.environment, pool), end: handWritten.stop };
  if (against !== undefined) {
    const other = await openEnvironment(server, { folder: path.resolve(against) });
    sides["other build"] = { ...openService(other, await openPool(other, needed)), end: other.close };
  }
  for (const [kind, send] of Object.entries(await openFloors(environment, server.folder, size)))
    sides[kind as Kind] = { environment, prepare: async (count, options) => () => send(options.connections, count) };
  return sides;
}

/** It has tables of its own in the same database, with a copy of the coupons that are there. */
export async function startHandWritten(environment: Environment, { folder }: Pick<Server, "folder">) {
  const { address, keys, credential, credentialId, tenantId } = environment;
  const session = openSession(address, { name: "coupon bench" });
  await session.run(readFileSync(path.join(import.meta.dirname, "hand-written.sql"), "utf8"));
  const row = [credential.accessKey, credentialId, tenantId, credential.secret];
  await session.rows("insert into hand.credential values ($1, $2, $3, $4)", row);
  await session.end();
  const { master } = subKeysOf(keys, keys.current);
  const derive = (label: string) => Buffer.from(deriveKey(master, Buffer.alloc(0), label)).toString("base64");
  const { url, pid, stop } = await startLoggedProgram("test/tools/bench/hand-written.ts", folder, {
    DATABASE_URL: formatUrl(address),
    TAG_KEY: derive("coupon/tag"),
    LOOKUP_KEY: derive("coupon/lookup"),
  });
  return { environment: { ...environment, url, pids: () => ({ ...environment.pids(), serve: pid }) }, stop };
}

async function runRound({ environment, prepare }: Side, { count, ...options }: Program): Promise<Round> {
  const start = await prepare(count, options);
  const before = await readCosts(environment);
  const load = await start();
  await environment.untilCaughtUp();
  return { ...load, costs: costsSince(before, await readCosts(environment)) };
}

const rateOf = ({ latencies, seconds }: Load): number => latencies.length / seconds;

function describe({ program, rounds }: Measured, all: Measured[]): Row {
  const of = (read: (round: Round, index: number) => number) => median(rounds.map(read));
  const ofCosts = (read: (costs: Costs) => number) => of(({ costs, latencies }) => read(costs) / latencies.length);
  const { kind, connections, perSecond } = program;
  /** Of the same number of connections. */
  const ratioTo = (other: Kind): number => {
    const found = all.find(({ program }) => program.kind === other && program.connections === connections);
    if (found === undefined || kind !== "HTTP" || perSecond !== undefined) return NaN;
    return of((round, index) => rateOf(round) / rateOf(found.rounds[index]!));
  };
  const load = connections === 1 ? "one connection" : `${connections} connections`;
  return {
    name: `${kind}, ${perSecond === undefined ? load : `a fixed ${perSecond}/s`}`,
    "calls/s": of(rateOf),
    "of the floor": ratioTo("floor"),
    "of the floor of 30": ratioTo("floor of 30"),
    "of hand-written": ratioTo("hand-written"),
    "of the other build": ratioTo("other build"),
    "p50 ms": of(({ latencies }) => quantile(latencies, 0.5)),
    "p99 ms": of(({ latencies }) => quantile(latencies, 0.99)),
    "log, bytes": ofCosts(({ walBytes }) => walBytes),
    "CPU, µs": ofCosts(({ postgres, serve, work }) => (postgres + serve + work) * 1e6),
    "of it database, µs": ofCosts(({ postgres }) => postgres * 1e6),
    "of it service, µs": ofCosts(({ serve }) => serve * 1e6),
  };
}

// redemptions: rate, latency and costs of redemptions over HTTP, beside the floor: what this machine and PostgreSQL can
// do at best. The rounds of all rows alternate, so that other load on the machine affects all of them, and each figure
// is the median of its rounds. Costs include the sequencer: they are read when a round's events are in the feed.
import { execFile } from "node:child_process";
import { globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { formatUrl } from "../../../src/config/database-address.ts";
import { openSession } from "../../../src/database/connect.ts";
import { findToolFolders } from "../../support/postgres-tools.ts";
import { openPool } from "./coupons.ts";
import { settle, type Environment, type Run } from "./environment.ts";
import { openLoader, type Load } from "./load.ts";
import { costsSince, median, quantile, readCosts, type Costs, type Row } from "./measure.ts";

type Program = { connections: number; isFloor?: boolean; perSecond?: number; share: number };
/** Sends so many calls of the floor. */
type Floor = (connections: number, count: number) => Promise<Load>;
type Round = Load & { costs: Costs };

// share: of the size, what a round sends. So all rounds take about four seconds.
const programs: Record<string, Program> = {
  "floor, 64 connections": { connections: 64, isFloor: true, share: 3.2 },
  "floor, 8 connections": { connections: 8, isFloor: true, share: 2.4 },
  "floor, one connection": { connections: 1, isFloor: true, share: 0.56 },
  "HTTP, 64 connections": { connections: 64, share: 1 },
  "HTTP, 8 connections": { connections: 8, share: 0.4 },
  "HTTP, one connection": { connections: 1, share: 0.12 },
  "HTTP, a fixed 500/s": { connections: 64, perSecond: 500, share: 0.08 },
};

export async function benchRedemptions({ open, server, size, rounds }: Run): Promise<Row[]> {
  const environment = await open();
  const pool = await openPool(environment, size * 5);
  const loader = openLoader();
  const floor = await openFloor(environment, server.folder, size);
  const measured = Object.entries(programs)
    .filter(([, { isFloor }]) => !isFloor || floor !== null)
    .map(([name, program]) => ({ name, program, rounds: [] as Round[] }));

  const prepare = async ({ isFloor, share, ...options }: Program): Promise<() => Promise<Load>> => {
    const count = Math.ceil(size * share);
    if (isFloor) return () => floor!(options.connections, count);
    return loader.prepare(environment, await pool.draw(count), options);
  };
  // Plans for empty tables are bad, and the first change of a page after a checkpoint logs the whole page. So a warm-up
  // round comes before fresh statistics and a checkpoint, and another one after them. A single round comes alone, for
  // it only shows that the bench works.
  for (let number = rounds === 1 ? 1 : -1; number <= rounds; number += 1) {
    if (number === 0) await settle(environment);
    for (const { program, rounds } of measured) {
      const round = await runRound(environment, await prepare(program));
      if (number > 0) rounds.push(round);
    }
  }
  await loader.end();

  const floors = new Map<number, number>();
  for (const { program, rounds } of measured) if (program.isFloor) floors.set(program.connections, rateOf(rounds));
  return measured.map(({ name, program, rounds }) => {
    const floorRate = program.perSecond === undefined ? floors.get(program.connections) : undefined;
    return describe(name, rounds, floorRate);
  });
}

async function runRound(environment: Environment, start: () => Promise<Load>): Promise<Round> {
  const before = await readCosts(environment);
  const load = await start();
  await environment.untilCaughtUp();
  return { ...load, costs: costsSince(before, await readCosts(environment)) };
}

const rateOf = (rounds: Round[]): number => median(rounds.map(({ latencies, seconds }) => latencies.length / seconds));

function describe(name: string, rounds: Round[], floorRate = NaN): Row {
  const of = (read: (round: Round) => number) => median(rounds.map(read));
  const ofCosts = (read: (costs: Costs) => number) => of(({ costs, latencies }) => read(costs) / latencies.length);
  return {
    name,
    "calls/s": rateOf(rounds),
    "of the floor": rateOf(rounds) / floorRate,
    "p50 ms": of(({ latencies }) => quantile(latencies, 0.5)),
    "p99 ms": of(({ latencies }) => quantile(latencies, 0.99)),
    "log, bytes": ofCosts(({ walBytes }) => walBytes),
    "CPU, µs": ofCosts(({ postgres, serve, work }) => (postgres + serve + work) * 1e6),
    "of it serve, µs": ofCosts(({ serve }) => serve * 1e6),
  };
}

/**
 * The floor of a redemption: one call of a function updates a row and inserts a row, and its commit waits for the disk.
 * pgbench sends the calls; without it the floor is null.
 */
async function openFloor(environment: Environment, folder: string, rows: number): Promise<Floor | null> {
  const [toolFolder] = findToolFolders("pgbench");
  if (toolFolder === undefined) {
    console.log("pgbench is missing, so the floor is left out");
    return null;
  }
  await makeTables(environment, rows);
  const [script, log] = [path.join(folder, "floor.sql"), path.join(folder, "floor.log")];
  writeFileSync(script, `select floor.move(1 + floor(random() * ${rows})::int);\n`);

  return async (connections, count) => {
    const each = Math.ceil(count / connections);
    const args = ["-n", "-M", "prepared", "-c", connections, "-j", Math.min(2, connections), "-t", each, "-f", script];
    const { stdout } = await promisify(execFile)(
      path.join(toolFolder, "pgbench"),
      [...args.map(String), "--log", `--log-prefix=${log}`, formatUrl(environment.address)],
      { env: { PATH: process.env["PATH"], PGOPTIONS: "-c role=coupon_api -c jit=off" } },
    );
    const perSecond = Number(/tps = ([\d.]+) \(without/.exec(stdout)?.[1]);
    // A line of the log: client, transaction, microseconds and more.
    const logs = globSync(`${log}*`);
    const lines = logs.flatMap((file) => readFileSync(file, "utf8").trimEnd().split("\n"));
    for (const file of logs) rmSync(file);
    if (!(perSecond > 0) || lines.length !== each * connections) throw new Error(`pgbench: ${stdout}`);
    const latencies = Float64Array.from(lines, (line) => Number(line.split(" ")[2]) / 1_000);
    await environment.until(
      "the sessions of pgbench to end",
      "count(*) = 0 as done from pg_stat_activity where application_name = 'pgbench' and datname = current_database()",
    );
    return { seconds: latencies.length / perSecond, latencies };
  };
}

async function makeTables({ address }: Environment, rows: number): Promise<void> {
  const session = openSession(address, { name: "coupon bench" });
  await session.run(`
    create schema floor;
    create table floor.stock (
      id int primary key, changes int not null, changed_at timestamptz not null, filler text not null)
      with (fillfactor = 85);
    create table floor.movement (
      movement_id bigint primary key generated always as identity, id int not null, moved_at timestamptz not null);
    insert into floor.stock select n, 0, now(), repeat('x', 60) from generate_series(1, ${rows}) n;
    create function floor.move(p_id int) returns int language plpgsql as $$
    begin
      update floor.stock s set changes = s.changes + 1, changed_at = clock_timestamp() where s.id = p_id;
      insert into floor.movement (id, moved_at) values (p_id, clock_timestamp());
      return p_id;
    end
    $$;
    grant usage on schema floor to coupon_api;
    grant select, insert, update on all tables in schema floor to coupon_api`);
  await session.end();
}

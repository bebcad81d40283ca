// The floors of a redemption. A transaction updates a row and inserts a row in one call of a function, and its commit
// waits for the disk. In the floor of 30 it does so for 30 rows. pgbench sends the calls.
import { execFile } from "node:child_process";
import { globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { formatUrl } from "../../../src/config/database-address.ts";
import { openSession } from "../../../src/database/connect.ts";
import { findToolFolders } from "../../support/postgres-tools.ts";
import type { Environment } from "./environment.ts";
import type { Load } from "./load.ts";

/** Sends so many rows. */
type Floor = (connections: number, count: number) => Promise<Load>;

const groupSize = 30;

/** Without pgbench, there are none. */
export async function openFloors(
  environment: Environment,
  folder: string,
  rows: number,
): Promise<Record<string, Floor>> {
  const [toolFolder] = findToolFolders("pgbench");
  if (toolFolder === undefined) {
    console.log("pgbench is missing, so the floors are left out");
    return {};
  }
  await makeTables(environment, rows);
  const open = (name: string, sql: string, size: number): Floor => {
    const script = path.join(folder, `${name}.sql`);
    writeFileSync(script, `${sql};\n`);
    return (connections, count) => {
      const clients = Math.ceil(connections / size);
      return runPgbench(environment, { tool: path.join(toolFolder, "pgbench"), script, clients, count, size });
    };
  };
  // As many connections as groups of 30 hold the calls, with rows of their own, so that none waits for another.
  const clientRow = `1 + :client_id * ${Math.floor(rows / 3)} + floor(random() * ${Math.floor(rows / 3)})::int`;
  return {
    floor: open("floor", `select floor.move(1 + floor(random() * ${rows})::int)`, 1),
    [`floor of ${groupSize}`]: open(
      "floor-of-many",
      `select floor.move_all(array(select ${clientRow} from generate_series(1, ${groupSize})))`,
      groupSize,
    ),
  };
}

type Calls = { tool: string; script: string; clients: number; count: number; size: number };

/** `size`: how many rows of a transaction count as calls. */
async function runPgbench(
  { address, until }: Environment,
  { tool, script, clients, count, size }: Calls,
): Promise<Load> {
  const each = Math.ceil(count / clients / size);
  const log = `${script}.log`;
  const args = ["-n", "-M", "prepared", "-c", clients, "-j", Math.min(2, clients), "-t", each, "-f", script];
  const { stdout } = await promisify(execFile)(
    tool,
    [...args.map(String), "--log", `--log-prefix=${log}`, formatUrl(address)],
    { env: { PATH: process.env["PATH"], PGOPTIONS: "-c role=coupon_api -c jit=off" } },
  );
  const perSecond = Number(/tps = ([\d.]+) \(without/.exec(stdout)?.[1]);
  // A line of the log: client, transaction, microseconds and more.
  const logs = globSync(`${log}*`);
  const lines = logs.flatMap((file) => readFileSync(file, "utf8").trimEnd().split("\n"));
  for (const file of logs) rmSync(file);
  if (!(perSecond > 0) || lines.length !== each * clients) throw new Error(`pgbench: ${stdout}`);
  const latencies = Float64Array.from(
    lines.flatMap((line) => Array.from({ length: size }, () => Number(line.split(" ")[2]) / 1_000)),
  );
  await until(
    "the sessions of pgbench to end",
    "count(*) = 0 as done from pg_stat_activity where application_name = 'pgbench' and datname = current_database()",
  );
  return { seconds: lines.length / perSecond, latencies };
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
    create function floor.move_all(p_ids int[]) returns int language plpgsql as $$
    begin
      update floor.stock s set changes = s.changes + 1, changed_at = clock_timestamp()
      from unnest(p_ids) as i (id)
      where s.id = i.id;
      insert into floor.movement (id, moved_at) select i.id, clock_timestamp() from unnest(p_ids) as i (id);
      return cardinality(p_ids);
    end
    $$;
    grant usage on schema floor to coupon_api;
    grant select, insert, update on all tables in schema floor to coupon_api`);
  await session.end();
}

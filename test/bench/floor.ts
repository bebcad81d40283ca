// The floor: what this machine and PostgreSQL can do at best. One call of a function updates a row and inserts a row,
// and its commit waits for the disk.
import { openSession } from "../../src/database/connect.ts";
import type { Contender } from "./contenders.ts";
import type { Environment } from "./environment.ts";
import { createDriverLoad, createSqlLoad } from "./pgbench.ts";

const rowCount = 300_000;

// With one connection our own driver sends the calls, so that their latency compares with that of gate.perform.
export async function createFloor(environment: Environment, connections: number): Promise<Contender> {
  await makeTables(environment);
  const statement = `select floor.move(1 + floor(random() * ${rowCount})::int)`;
  const parts = { ...environment, role: "coupon_api", connections };
  const sqlLoad = connections === 1 ? createDriverLoad(parts) : createSqlLoad(parts);
  return {
    isRedeeming: false,
    hasMargins: true,
    prepare: async (seconds) => (clock) => sqlLoad.run([statement], seconds, clock),
    end: () => sqlLoad.end(),
  };
}

// All floors share them, so that their pages are warm for each.
async function makeTables({ address }: Environment): Promise<void> {
  const session = openSession(address, { name: "coupon bench floor" });
  const [found] = await session.rows("select from pg_namespace n where n.nspname = 'floor'");
  if (found === undefined)
    await session.run(`
      create schema floor;
      create table floor.stock (
        id int primary key, changes int not null, changed_at timestamptz not null, filler text not null)
        with (fillfactor = 85);
      create table floor.movement (
        movement_id bigint primary key generated always as identity, id int not null, moved_at timestamptz not null);
      insert into floor.stock select n, 0, now(), repeat('x', 60) from generate_series(1, ${rowCount}) n;
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

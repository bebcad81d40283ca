// The files of db/migrations, run in order inside the transaction of a migrate.
import { pathToFileURL } from "node:url";
import ley from "ley";
import { databaseFolder } from "./db-files.ts";
import type { Session } from "../database/types.ts";
import { runScript } from "./load-code.ts";
import type { Migration, MigrationClient } from "./sql-migration.ts";

/** How long tills may stand behind a lock that we wait for. */
const lockTimeoutMs = 200;
export const begin = `begin;
  set local role coupon_owner;
  set local search_path = '';
  set local lock_timeout = ${lockTimeoutMs};
  set local check_function_bodies = on;
  set local plpgsql.extra_errors = 'all'`;

/**
 * In our transaction, but for those that say `isOnline`: what was done before them is committed, so they
 * begin and end between two transactions. A migrate that is killed there is simply run again.
 */
export async function runMigrationFiles(session: Session, applied: string[]): Promise<string[]> {
  const client: MigrationClient = {
    run: (text, name) => runScript(session, text, `db/migrations/${name}`),
  };
  // The lock and the transaction are ours, so the driver only lists and runs.
  const driver = {
    connect: () => session,
    setup: async () => applied.map((name) => ({ name: `${name}.ts` })),
    async loop(_: unknown, files: { abs: string; name: string }[]) {
      for (const { abs, name } of files) {
        const migration = (await import(pathToFileURL(abs).href)) as Migration;
        if (migration.isOnline) {
          await session.run("commit; set role coupon_owner; set search_path = ''");
          await migration.up(client);
          await session.run(`reset role; reset search_path; ${begin}`);
        } else {
          await migration.up(client);
        }
        // Only the first migration finds it missing, and only that one makes the schema.
        await session.run(migrationTable);
        await session.rows("insert into core.migration (name) values ($1)", [name.replace(/\.ts$/, "")]);
      }
    },
    end: () => {},
  };
  return ley.up({ cwd: databaseFolder, dir: "migrations", config: {}, driver: driver as never });
}

const migrationTable = `
  create table if not exists core.migration (
    position    int          primary key generated always as identity,
    name        text         not null unique,
    applied_at  timestamptz  not null default clock_timestamp()
  );
  comment on table core.migration is 'Which files of db/migrations were applied, in order.'`;

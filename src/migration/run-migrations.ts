// Runs the files of db/migrations in order, inside the transaction of a migrate.
import { pathToFileURL } from "node:url";
import ley from "ley";
import { databaseFolder, hashMigration } from "./db-files.ts";
import type { Session } from "../database/types.ts";
import { runScript } from "./load-code.ts";
import type { Migration, MigrationClient } from "./sql-migration.ts";

/** How long a migrate waits for a lock. Calls wait behind it meanwhile. */
const lockTimeoutMs = 200;
export const lockTimeout = `set local lock_timeout = ${lockTimeoutMs}`;
export const transactionSettings = `
  set local role coupon_owner;
  set local search_path = '';
  ${lockTimeout};
  set local check_function_bodies = on;
  set local plpgsql.extra_errors = 'all'`;
export const begin = `begin; ${transactionSettings}`;

export interface RunMigration {
  name: string;
  isOnline: boolean;
}

/**
 * Runs the migrations that are not in `applied`, inside the caller's transaction. An online migration runs outside it:
 * this commits the earlier work, runs the migration, records it, commits, and begins a new transaction. If migrate is
 * killed there, run it again. A dry run skips online migrations.
 */
export async function runMigrations(
  session: Session,
  applied: string[],
  { isDryRun = false, onStep = (_: string): void => {} } = {},
): Promise<RunMigration[]> {
  const client: MigrationClient = {
    run: (text, name) => runScript(session, text, `db/migrations/${name}`),
  };
  const done: RunMigration[] = [];
  // This ley driver only lists and runs, because the caller holds the lock and the transaction.
  const driver = {
    connect: () => session,
    setup: async () => applied.map((name) => ({ name: `${name}.ts` })),
    async loop(_: unknown, files: { abs: string; name: string }[]) {
      for (const file of files) {
        const name = file.name.replace(/\.ts$/, "");
        onStep(`migrating: ${name}`);
        const { up, isOnline = false } = (await import(pathToFileURL(file.abs).href)) as Migration;
        if (!isOnline) {
          await up(client);
        } else if (!isDryRun) {
          await session.run("commit; set role coupon_owner; set search_path = ''");
          await up(client);
          await refuseInvalidIndexes(session, name);
          await session.run(`reset role; reset search_path; ${begin}`);
        }
        // Only the first migration finds this table missing, because that migration creates the schema.
        await session.run(migrationTable);
        await session.rows("insert into core.migration (name, sha256) values ($1, $2)", [name, hashMigration(name)]);
        // An online migration stays, even if a later step fails.
        if (isOnline && !isDryRun) await session.run(`commit; ${begin}`);
        done.push({ name, isOnline });
      }
    },
    end: () => {},
  };
  await ley.up({ cwd: databaseFolder, dir: "migrations", config: {}, driver: driver as never });
  return done;
}

// A build that fails leaves an invalid index. `if not exists` finds its name, and would leave it invalid forever.
async function refuseInvalidIndexes(session: Session, migration: string): Promise<void> {
  const [found] = await session.rows<{ index: string }>(
    `select c.oid::regclass::text as index
     from pg_index i
     join pg_class c on c.oid = i.indexrelid
     join pg_namespace n on n.oid = c.relnamespace
     where not i.indisvalid and n.nspname = 'core'
     limit 1`,
  );
  if (found === undefined) return;
  throw new Error(
    `${migration}: the index ${found.index} is invalid, because its build failed or another session is building it. ` +
      `If none is: "drop index concurrently ${found.index}", then migrate again`,
  );
}

const migrationTable = `
  create table if not exists core.migration (
    position    int          primary key generated always as identity,
    name        text         not null unique,
    sha256      text         not null,
    applied_at  timestamptz  not null default clock_timestamp()
  );
  comment on table core.migration is 'The files of db/migrations that were applied, in order.';
  comment on column core.migration.sha256 is 'Of the .sql file that ran. migrate refuses a file with another one.'`;

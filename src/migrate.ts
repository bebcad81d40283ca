// `npm run migrate`: brings a database to what this checkout says. Safe at any time and any number
// of times at once: one session lock lets them in one after the other, and all that belongs to us
// happens in one transaction, so the database is at one version or the other and never between.

import { pathToFileURL } from 'node:url'
import ley from 'ley'
import { databaseFolder, expectedVersion, listMigrations, readScript } from './checkout.ts'
import { readConfig } from './config.ts'
import { type Address, type Session, openSession, poolUrl, resolveAddress, sqlState } from './database.ts'
import { loadCode, runScript } from './loader.ts'
import { isProgram, runProgram } from './program.ts'

export { expectedVersion } from './checkout.ts'

/** What a migration gets: it runs the text of its .sql file, whose name is for messages. */
export interface MigrationClient {
  run(text: string, name: string): Promise<void>
}

type Log = (line: string) => void

/** "coupon" in ASCII: the advisory lock of everybody who changes the schema. */
const lockKey = '109324429684590'

export async function migrate(address: Address, log: Log = () => {}): Promise<void> {
  const session = openSession(address, { name: 'coupon migrate' })
  try {
    await checkServer(session)
    await takeLock(session, log)
    const applied = await readApplied(session)
    refuseNewer(applied)
    const expected = expectedVersion()
    if (applied.migrations.at(-1) === expected.migration && applied.code === expected.code) {
      log('database is up to date')
      return
    }
    await makeRoles(session)
    await migrateWorker(address)
    log(await change(session, applied.migrations, expected.code))
  } finally {
    await session.end()
  }
}

async function checkServer(session: Session): Promise<void> {
  const [server] = await session.rows<{ version: number; encoding: string }>(
    `select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding`,
  )
  if (server!.version < 150_000) throw new Error('PostgreSQL 15 or newer is needed')
  if (server!.encoding !== 'UTF8') throw new Error(`the database must have the encoding UTF8, not ${server!.encoding}`)
}

async function takeLock(session: Session, log: Log): Promise<void> {
  const [first] = await session.rows<{ is_mine: boolean }>('select pg_try_advisory_lock($1) as is_mine', [lockKey])
  if (first!.is_mine) return
  log('waiting for another migrate')
  await session.rows('select pg_advisory_lock($1)', [lockKey])
}

interface Applied {
  migrations: string[]
  code: string | null
}

async function readApplied(session: Session): Promise<Applied> {
  const exists = await session.rows(
    `select from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'core' and c.relname = 'migration'`,
  )
  if (exists.length === 0) return { migrations: [], code: null }
  await session.run('begin; set local role coupon_owner')
  const migrations = await session.rows<{ name: string }>('select name from core.migration order by position')
  const code = await session.rows<{ sha256: string }>('select sha256 from core.code_version')
  await session.run('commit')
  return { migrations: migrations.map(({ name }) => name), code: code[0]?.sha256 ?? null }
}

function refuseNewer(applied: Applied): void {
  const known = listMigrations()
  const unknown = applied.migrations.filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    throw new Error(`the database is newer than this checkout, which does not know its migration ${unknown.join(', ')}`)
  }
}

/** Roles belong to the cluster: a migrate of another of its databases may be making them just now. */
async function makeRoles(session: Session): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await runScript(session, readScript('roles.sql'), 'db/roles.sql')
    } catch (error) {
      const isClash = ['42710', '23505', 'XX000'].includes(sqlState((error as Error).cause) ?? '')
      if (!isClash || attempt === 10) throw error
    }
  }
}

/** As coupon_worker, so that everything in its schema is its own: row security lets only the owner in. */
async function migrateWorker(address: Address): Promise<void> {
  // Loaded here only: serve needs this module's version, not the library.
  const { Logger, runMigrations } = await import('graphile-worker')
  const logger = new Logger(() => () => {})
  await runMigrations({ connectionString: poolUrl(address, 'coupon_worker'), logger })
}

async function change(session: Session, applied: string[], codeHash: string): Promise<string> {
  await session.run(`begin;
    set local role coupon_owner;
    set local search_path = '';
    -- Better to fail and be run again than to make the service wait behind us.
    set local lock_timeout = '10s';
    set local check_function_bodies = on;
    set local plpgsql.extra_errors = 'all'`)
  const fresh = await runMigrationFiles(session, applied)
  const count = await loadCode(session)
  await runScript(session, readScript('grants.sql'), 'db/grants.sql')
  await session.rows('delete from core.code_version')
  await session.rows('insert into core.code_version (sha256) values ($1)', [codeHash])
  await session.run('commit')
  return fresh.length > 0
    ? `migrated: ${fresh.length} migrations, ${count} functions and views`
    : `no new migration, ${count} functions and views loaded`
}

async function runMigrationFiles(session: Session, applied: string[]): Promise<string[]> {
  const client: MigrationClient = {
    run: (text, name) => runScript(session, text, `db/migrations/${name}`),
  }
  // The lock and the transaction are ours, so the driver only lists and runs.
  const driver = {
    connect: () => session,
    setup: async () => applied.map((name) => ({ name: `${name}.ts` })),
    async loop(_: unknown, files: { abs: string; name: string }[]) {
      for (const { abs, name } of files) {
        const migration = (await import(pathToFileURL(abs).href)) as { up(client: MigrationClient): Promise<void> }
        await migration.up(client)
        // Only the first migration finds it missing, and only that one makes the schema.
        await session.run(migrationTable)
        await session.rows('insert into core.migration (name) values ($1)', [name.replace(/\.ts$/, '')])
      }
    },
    end: () => {},
  }
  return ley.up({ cwd: databaseFolder, dir: 'migrations', config: {}, driver: driver as never })
}

const migrationTable = `
  create table if not exists core.migration (
    position    int          primary key generated always as identity,
    name        text         not null unique,
    applied_at  timestamptz  not null default clock_timestamp()
  );
  comment on table core.migration is 'Which files of db/migrations were applied, in order.'`

if (isProgram(import.meta)) {
  await runProgram(async () => {
    if (process.argv.includes('--snapshot')) {
      const { writeSnapshot } = await import('./snapshot.ts')
      return writeSnapshot(migrate)
    }
    await migrate(await resolveAddress(readConfig()), console.log)
  })
}

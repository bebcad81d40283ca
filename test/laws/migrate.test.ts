// What `npm run migrate` promises: any number at once, one version or the other, nothing left over.

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import t from 'tap'
import { listCode, listMigrations } from '../../src/checkout.ts'
import { type Address, openSession, poolUrl } from '../../src/database.ts'
import { expectedVersion, migrate } from '../../src/migrate.ts'
import { snapshotTables } from '../../src/snapshot.ts'
import { createDatabase, createEmptyDatabase } from '../support/database.ts'

const root = path.resolve(import.meta.dirname, '../..')

async function asOwner<T>(address: Address, text: string, params: unknown[] = []): Promise<T[]> {
  const session = openSession(address, { name: 'coupon test', role: 'coupon_owner' })
  try {
    return await session.rows<T>(text, params)
  } finally {
    await session.end()
  }
}

/** The program itself, as an operator starts it. */
function runMigrate(address: Address): Promise<{ code: number | null; output: string }> {
  const url = 'url' in address ? address.url : poolUrl(address, '').replace(/[?&]options=.*/, '')
  const child = spawn('node', ['src/migrate.ts'], { cwd: root, env: { ...process.env, DATABASE_URL: url } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => { output += chunk })
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })))
}

t.test('eight at the same moment on an empty database: all succeed, one does the work', async (t) => {
  const { address, drop } = await createEmptyDatabase()
  t.teardown(drop)
  const results = await Promise.all(Array.from({ length: 8 }, () => runMigrate(address)))
  t.strictSame(results.map(({ code }) => code), Array(8).fill(0), results.map(({ output }) => output).join(''))
  t.equal(results.filter(({ output }) => output.includes('migrated: ')).length, 1)
  t.equal(results.filter(({ output }) => output.includes('up to date')).length, 7)
  t.strictSame((await asOwner<{ name: string }>(address, 'select name from core.migration order by position')).map(({ name }) => name), listMigrations())
})

t.test('the database says which version it has, and that is this checkout', async (t) => {
  const { address, drop } = await createDatabase()
  t.teardown(drop)
  t.strictSame([...await asOwner(address, 'select migration, code from gate.version()')], [expectedVersion()])
})

t.test('a database newer than the checkout is refused and left alone', async (t) => {
  const { address, drop } = await createDatabase()
  t.teardown(drop)
  await asOwner(address, `insert into core.migration (name) values ('999-future')`)
  await asOwner(address, `update core.code_version set sha256 = 'another'`)
  await t.rejects(migrate(address), { message: /newer than this checkout.*999-future/ })
  t.strictSame([...await asOwner(address, 'select sha256 from core.code_version')], [{ sha256: 'another' }])
})

t.test('what the repository no longer has goes, what it has comes back, and nobody else is cut off', async (t) => {
  const { address, drop } = await createDatabase()
  t.teardown(drop)
  const markOld = (): Promise<unknown> => asOwner(address, `update core.code_version set sha256 = 'another'`)
  const listNames = async (): Promise<string[]> =>
    (await asOwner<{ name: string }>(address, `
      select n.nspname || '.' || p.proname as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where n.nspname in ('rules', 'api', 'gate', 'jobs', 'admin', 'report')
      union all select schemaname || '.' || viewname from pg_views where schemaname = 'report' order by 1`)).map(({ name }) => name)
  const expected = listCode().map(({ schema, name }) => `${schema}.${name}`).sort()
  t.strictSame((await listNames()).sort(), expected)

  await asOwner(address, 'create function rules.forgotten() returns int language sql immutable return 1')
  await asOwner(address, 'create view report.forgotten as select rules.forgotten() as one')
  await asOwner(address, 'drop function gate.version()')
  // Another result type than the file's: replacing alone would fail.
  await asOwner(address, 'create function gate.version() returns int language sql immutable return 1')
  await markOld()
  await migrate(address)
  t.strictSame((await listNames()).sort(), expected)
  t.strictSame([...await asOwner(address, 'select migration, code from gate.version()')], [expectedVersion()])

  await asOwner(address, 'create function rules.forgotten() returns int language sql immutable return 1')
  await asOwner(address, 'create view core.theirs as select rules.forgotten() as one')
  await markOld()
  await t.rejects(migrate(address), { message: /cannot drop.*2BP01.*\n.*core\.theirs/s })
  t.equal((await asOwner(address, 'select one from core.theirs')).length, 1, 'nothing was dropped')
})

t.test('graphile-worker owns its schema through the role of the worker', async (t) => {
  const { address, drop } = await createDatabase()
  t.teardown(drop)
  const owners = await asOwner<{ owner: string }>(address, `
    select distinct pg_get_userbyid(c.relowner) as owner from pg_class c
    where c.relnamespace = (select oid from pg_namespace where nspname = 'graphile_worker')`)
  t.strictSame([...owners], [{ owner: 'coupon_worker' }])
})

t.test('db/tables.sql is what the migrations make (npm run migrate -- --snapshot)', async (t) => {
  const { address, drop } = await createDatabase()
  t.teardown(drop)
  t.equal(await snapshotTables(address), readFileSync(path.join(root, 'db/tables.sql'), 'utf8'))
})

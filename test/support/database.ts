// Databases for tests. Each test file takes a clone of the template that run.ts has migrated, so no
// file sees what another one did.

import { type Address, type Database, connect } from '../../src/database.ts'

export interface TestDatabase {
  address: Address
  name: string
  drop(): Promise<void>
}

/** A migrated database without any tenant. */
export async function createDatabase(): Promise<TestDatabase> {
  const { template } = readRun()
  // Copying files takes a tenth of the time that writing all pages through the log takes.
  return create(`template "${template}" strategy file_copy`)
}

/** A database in which nobody has migrated yet. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  return create(`template template0 encoding 'UTF8'`)
}

async function create(options: string): Promise<TestDatabase> {
  const { server, prefix } = readRun()
  const name = `${prefix}${process.pid}_${(count += 1)}`
  await asAdmin(server, (admin) => admin.rows(`create database "${name}" ${options}`))
  return {
    name,
    address: addressOf(server, name),
    drop: () => asAdmin(server, async (admin) => {
      await admin.rows(`drop database if exists "${name}" with (force)`)
    }),
  }
}

let count = 0

/** Set by run.ts, because every test file is a process of its own. */
function readRun(): { server: Address; prefix: string; template: string } {
  const text = process.env['COUPON_TEST_RUN']
  if (text === undefined) throw new Error('start tests with: npm test -- test/some/file.test.ts')
  return JSON.parse(text) as ReturnType<typeof readRun>
}

/** The same server, another database. */
export function addressOf(server: Address, database: string): Address {
  return 'url' in server
    ? { url: server.url.replace(/^(\w+:\/\/[^/]*\/)[^?]*/, `$1${database}`) }
    : { ...server, database }
}

export async function asAdmin<T>(server: Address, act: (admin: Database) => Promise<T>): Promise<T> {
  const admin = connect(server, { name: 'coupon test', max: 1 })
  try {
    return await act(admin)
  } finally {
    await admin.end()
  }
}

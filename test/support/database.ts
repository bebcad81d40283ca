// Databases for tests. Each test file gets a clone of the template that run.ts has migrated, so no file sees what
// another one did. Dropping a database first checks every invariant: no test may leave one broken.
import { appendFileSync } from "node:fs";
import { connect, openSession } from "../../src/database/connect.ts";
import type { Address } from "../../src/config/database-address.ts";
import type { Test } from "tap";
import type { Database, Session } from "../../src/database/types.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { analyzeGrownTables } from "./sequence-events.ts";
import { findBrokenInvariants } from "./inspect.ts";
import { waitUntil } from "./wait-until.ts";

export interface TestDatabase {
  address: Address;
  name: string;
  drop(): Promise<void>;
}

export interface Options {
  /** For tests that corrupt rows on purpose. */
  mayBreakInvariants?: boolean;
}

/** A migrated database without any tenant; or a copy of another one. */
export async function createDatabase(options: Options = {}, template = readRun().template): Promise<TestDatabase> {
  // Copying files takes a tenth of the time that writing every page through the log takes.
  return create(`template "${template}" strategy file_copy`, options);
}

/** The same, until the end of the test. */
export async function useDatabase(t: Test): Promise<Address> {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  return address;
}

/** A session in a migrated database of its own, which the test may leave in any state. */
export async function openScratchDatabase(t: Test): Promise<Session> {
  const { address, drop } = await createDatabase({ mayBreakInvariants: true });
  const session = openSession(address, { name: "coupon test" });
  t.teardown(async () => {
    await session.end();
    await drop();
  });
  return session;
}

/** A database without migrations. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  return create("template template0 encoding 'UTF8'", { mayBreakInvariants: true });
}

async function create(options: string, { mayBreakInvariants = false }: Options): Promise<TestDatabase> {
  const { server, prefix } = readRun();
  const name = `${prefix}${process.pid}_${(count += 1)}`;
  await asAdmin(server, (admin) => admin.rows(`create database "${name}" ${options}`));
  const address = addressOf(server, name);
  return {
    name,
    address,
    async drop() {
      const broken = mayBreakInvariants ? [] : await checkInvariants(address);
      await traceCalls(address);
      await asAdmin(server, (admin) => admin.rows(`drop database if exists "${name}" with (force)`));
      // An error in a teardown fails the test.
      if (broken.length > 0) throw new Error(`broken invariants: ${broken.join("; ")}`);
    },
  };
}

/** Sequences every event first, so that the invariants of feeds are checked in every test. */
async function checkInvariants(address: Address): Promise<string[]> {
  const session = openSession(address, { name: "coupon test invariants" });
  try {
    // Compiling the view takes longer than reading the few rows of a test.
    await session.run("set jit = off");
    const isOver = async () => {
      const [step] = await session.rows<{ is_drained: boolean; sequenced: number }>(
        "select * from jobs.sequence_events(10000)",
      );
      // Not sequenceEvents: another session of the test may hold the sequencer's lock for good.
      return step!.is_drained || step!.sequenced === 0;
    };
    await waitUntil("the sequencer to have nothing left", isOver, { everyMs: 0 });
    // As the worker does: planned for empty tables, the view takes minutes where a test wrote many rows.
    await analyzeGrownTables(session);
    return await findBrokenInvariants(session);
  } finally {
    await session.end();
  }
}

/** `npm run mutate` asks which functions a test calls. */
async function traceCalls(address: Address): Promise<void> {
  const file = process.env["COUPON_TEST_TRACE"];
  if (file === undefined) return;
  const session = openSession(address, { name: "coupon test trace" });
  try {
    const called = await session.rows<{ line: string }>(
      "select format('%s.%s %s', schemaname, funcname, calls) as line from pg_stat_user_functions",
    );
    appendFileSync(file, called.map(({ line }) => `${line}\n`).join(""));
  } finally {
    await session.end();
  }
}

let count = 0;

/** `usual`: a database with the usual tenants, and their master key. `npm run mutate` has none. */
export type Run = {
  server: Address;
  prefix: string;
  template: string;
  usual?: { template: string; masterKeyText: string };
  /** For --router: a router without cells. */
  router?: Address;
};

/** Set by run.ts, because every test file is a separate process. */
export function readRun(): Run {
  const text = process.env["COUPON_TEST_RUN"];
  if (text === undefined) throw new Error("start tests with: npm test -- test/some/file.test.ts");
  return JSON.parse(text) as Run;
}

/** The same server, another database. */
export function addressOf(server: Address, database: string): Address {
  return { ...server, database };
}

export async function asAdmin<T>(server: Address, act: (admin: Database) => Promise<T>): Promise<T> {
  const admin = connect(server, { name: "coupon test", max: 1 });
  try {
    return await act(admin);
  } finally {
    await admin.end();
  }
}

// Without it, the first worker of each test checks every invariant, which takes a second of CPU.
const noteChecks =
  "insert into core.invariant_check select invariant, 0, null, clock_timestamp() from rules.known_invariant";

/** The migrated database that createDatabase clones. Its invariants were checked. */
export async function makeTemplate(server: Address, prefix: string): Promise<string> {
  const name = `${prefix}template`;
  await asAdmin(server, (admin) => admin.rows(`create database "${name}" template template0 encoding 'UTF8'`));
  await migrate(addressOf(server, name));
  await asAdmin(addressOf(server, name), (admin) => admin.rows(noteChecks));
  return name;
}

/** Includes the databases of tests that were killed before they could drop their own. */
export async function dropDatabases(server: Address, prefix: string): Promise<void> {
  await asAdmin(server, async (admin) => {
    const left = await admin.rows<{ datname: string }>(
      "select datname from pg_database where starts_with(datname, $1)",
      [prefix],
    );
    for (const { datname } of left) await admin.rows(`drop database "${datname}" with (force)`);
  });
}

// `npm run migrate`: brings a database to what this checkout says. Safe at any time and any number
// of times at once: one session lock lets them in one after the other, and all that belongs to us
// happens in one transaction, so the database is at one version or the other and never between.
// (A migration that says `isOnline` is a step of its own before that, see runMigrationFiles.)
//
// Tills go on meanwhile. A lock that somebody has for long, a psql session or a report, is not waited
// for: whoever waits for the lock of a whole table has everybody behind him wait too. So a wait is cut
// off after a moment, all is undone, and it begins anew a little later.
import { setTimeout as sleep } from "node:timers/promises";
import { expectedVersion, listMigrations, readScript } from "./db-files.ts";
import { openSession, sqlState } from "../database/connect.ts";
import type { Address } from "../common/database-address.ts";
import type { Session } from "../database/types.ts";
import { dropRoutines, loadCode, runScript } from "./load-code.ts";
import { begin, runMigrationFiles } from "./run-migrations.ts";

type Log = (line: string) => void;

/** "coupon" in ASCII: the advisory lock of everybody who changes the schema. */
const lockKey = "109324429684590";

/** How long we try. Then somebody has to look who holds the lock. */
const giveUpAfterMs = 60_000;

export async function migrate(address: Address, log: Log = () => {}): Promise<void> {
  const session = openSession(address, { name: "coupon migrate" });
  try {
    await checkServer(session);
    await takeLock(session, log);
    const applied = await readApplied(session);
    refuseNewer(applied);
    const expected = expectedVersion();
    if (applied.migrations.at(-1) === expected.migration && applied.code === expected.code) {
      log("database is up to date");
      return;
    }
    await makeRoles(session);
    await runScript(session, readScript("worker.sql"), "db/worker.sql");
    const { said, left } = await changeInTime(session, expected.code, log);
    await dropLeft(session, left);
    log(said);
  } finally {
    await session.end();
  }
}

async function checkServer(session: Session): Promise<void> {
  const [server] = await session.rows<{ version: number; encoding: string }>(
    "select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding",
  );
  if (server!.version < 150_000) throw new Error("PostgreSQL 15 or newer is needed");
  if (server!.encoding !== "UTF8") throw new Error(`the database must have the encoding UTF8, not ${server!.encoding}`);
}

async function takeLock(session: Session, log: Log): Promise<void> {
  const [first] = await session.rows<{ is_mine: boolean }>("select pg_try_advisory_lock($1) as is_mine", [lockKey]);
  if (first!.is_mine) return;
  log("waiting for another migrate");
  await session.rows("select pg_advisory_lock($1)", [lockKey]);
}

interface Applied {
  migrations: string[];
  code: string | null;
}

async function readApplied(session: Session): Promise<Applied> {
  const exists = await session.rows(
    `select from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'core' and c.relname = 'migration'`,
  );
  if (exists.length === 0) return { migrations: [], code: null };
  await session.run("begin; set local role coupon_owner");
  const migrations = await session.rows<{ name: string }>("select name from core.migration order by position");
  const code = await session.rows<{ sha256: string }>("select sha256 from core.code_version where is_current");
  await session.run("commit");
  return { migrations: migrations.map(({ name }) => name), code: code[0]?.sha256 ?? null };
}

function refuseNewer(applied: Applied): void {
  const known = listMigrations();
  const unknown = applied.migrations.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new Error(
      `the database is newer than this checkout, which does not know its migration ${unknown.join(", ")}`,
    );
  }
}

/** Roles belong to the cluster: a migrate of another of its databases may be making them just now. */
async function makeRoles(session: Session): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await runScript(session, readScript("roles.sql"), "db/roles.sql");
    } catch (error) {
      const isClash = ["42710", "23505", "XX000"].includes(sqlState((error as Error).cause) ?? "");
      if (!isClash || attempt === 10) throw error;
    }
  }
}

interface Change {
  said: string;
  left: string[];
}

/** Again and again, until no lock is in the way. */
async function changeInTime(session: Session, codeHash: string, log: Log): Promise<Change> {
  const deadline = performance.now() + giveUpAfterMs;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await change(session, (await readApplied(session)).migrations, codeHash);
    } catch (error) {
      // lock_not_available, deadlock_detected
      const isLocked = ["55P03", "40P01"].includes(sqlState((error as Error).cause ?? error) ?? "");
      if (!isLocked || performance.now() > deadline) throw error;
      await session.run("rollback; reset role; reset search_path");
      if (attempt === 1) log("a lock is in the way: trying again");
      await sleep(100 + Math.random() * 400);
    }
  }
}

async function change(session: Session, applied: string[], codeHash: string): Promise<Change> {
  await session.run(begin);
  const fresh = await runMigrationFiles(session, applied);
  const { count, left } = await loadCode(session);
  await runScript(session, readScript("grants.sql"), "db/grants.sql");
  await recordCode(session, codeHash);
  await session.run("commit");
  const said =
    fresh.length > 0
      ? `migrated: ${fresh.length} migrations, ${count} functions and views`
      : `no new migration, ${count} functions and views loaded`;
  return { said, left };
}

/**
 * When the calls are over that began before the change, or after 5 s: a call may run for 3 s. A migrate that is killed
 * before leaves them to the next one.
 */
async function dropLeft(session: Session, left: string[]): Promise<void> {
  if (left.length === 0) return;
  const deadline = performance.now() + 5_000;
  const running =
    "select virtualtransaction as id from pg_locks where locktype = 'virtualxid' and pid <> pg_backend_pid()";
  const listRunning = async (): Promise<string[]> => (await session.rows<{ id: string }>(running)).map(({ id }) => id);
  const before = new Set(await listRunning());
  while ((await listRunning()).some((id) => before.has(id)) && performance.now() < deadline) await sleep(20);
  await session.run(begin);
  await dropRoutines(session, left);
  await session.run("commit");
}

/** The version before is kept beside it; who goes back to it is there as if nothing had been. */
async function recordCode(session: Session, codeHash: string): Promise<void> {
  const isBack = (await session.rows("select from core.code_version where sha256 = $1", [codeHash])).length > 0;
  await session.rows("delete from core.code_version where $1 or not is_current", [isBack]);
  await session.rows("update core.code_version set is_current = false");
  await session.rows("insert into core.code_version (sha256) values ($1)", [codeHash]);
}

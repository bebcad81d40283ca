// Brings a database to this version of the source. Safe to run at any time and several times at once: a session lock
// lets only one migrate run at a time. Everything happens in one transaction, so the database is at the old version or
// the new one and never in between. (A migration with `isOnline` is a separate step before that, see
// run-migrations.ts.)
//
// The service keeps running. A migrate that waits for a table's lock makes all calls wait behind it. So if a psql
// session or a report holds the lock, a migrate waits only briefly, undoes everything and tries again a little later.
import { setTimeout as sleep } from "node:timers/promises";
import type { Address } from "../config/database-address.ts";
import { openSession, sqlState } from "../database/connect.ts";
import { refuseRouter } from "../database/refuse-router.ts";
import { refuseSettings } from "../database/session-settings.ts";
import type { Session } from "../database/types.ts";
import { type Applied, readApplied, refuseOtherText } from "./applied.ts";
import { codeSchemas, expectedVersion, listCode, listMigrations, readScript } from "./db-files.ts";
import { type Loaded, dropRoutines, loadCode, runScript } from "./load-code.ts";
import { type RunMigration, begin, lockTimeout, runMigrations, transactionSettings } from "./run-migrations.ts";

export type Log = (line: string) => void;

/** "coupon" in ASCII: the advisory lock of every program that changes the schema. */
const lockKey = "109324429684590";

/** After this time, migrate gives up: an operator has to find the session that holds the lock. */
const giveUpAfterMs = 60_000;

/** Returns false if the database was already up to date. `onStep` is called with the name of each step. */
export async function migrate(address: Address, log: Log = () => {}, onStep: Log = () => {}): Promise<boolean> {
  return withOutdatedDatabase(address, { log, onStep }, async (session, { codeHash, applied }) => {
    await makeRoles(session);
    await runScript(session, readScript("worker.sql"), "db/worker.sql");
    const { loaded } = await retryWhileLocked(session, { applied, log }, async (applied) => {
      // equivalent mutant (await): a session sends its statements in the order of the calls
      await session.run(begin);
      const changed = await change(session, applied, codeHash, { onStep });
      await session.run("commit");
      return changed;
    });
    onStep("waiting for calls of functions that are dropped");
    await dropWhenUnused(session, loaded.unusedRoutines);
    const pendingCount = listMigrations().length - applied.length;
    log(
      pendingCount > 0
        ? `migrated: ${pendingCount} migrations, ${loaded.count} functions and views`
        : `no new migration, ${loaded.count} functions and views loaded`,
    );
  });
}

/** Does what `migrate` does in one transaction, rolls it back, and logs what a migrate would do. */
export async function dryRun(address: Address, log: Log, onStep: Log): Promise<boolean> {
  return withOutdatedDatabase(address, { log, onStep }, async (session, { codeHash, applied }) => {
    const rolesBefore = await listRoles(session);
    const { migrations, loaded, newRoles } = await retryWhileLocked(session, { applied, log }, async (applied) => {
      await makeRoles(session, { isDryRun: true });
      const newRoles = (await listRoles(session)).filter((role) => !rolesBefore.includes(role));
      await runScript(session, readScript("worker.sql"), "db/worker.sql");
      await session.run(transactionSettings);
      const changed = await change(session, applied, codeHash, { isDryRun: true, onStep });
      await session.run("rollback");
      return { ...changed, newRoles };
    });
    for (const role of newRoles) log(`would create the role ${role}`);
    for (const { name, isOnline } of migrations) {
      log(`would apply ${name}${isOnline ? " online, outside the transaction: not tried in this dry run" : ""}`);
    }
    log(`would load ${loaded.count} functions and views`);
    for (const name of loaded.dropped) log(`would drop ${name}`);
    for (const name of loaded.retired) log(`would keep ${name} for one more version`);
    log("dry run: nothing was changed");
  });
}

/** Calls `act` under the lock of all migrates and returns true, unless the database is up to date. */
async function withOutdatedDatabase(
  address: Address,
  { log, onStep }: { log: Log; onStep: Log },
  act: (session: Session, versions: { applied: string[]; codeHash: string }) => Promise<void>,
): Promise<boolean> {
  const session = openSession(address, { name: "coupon migrate" });
  try {
    await checkServer(session);
    await refuseRouter(session.rows);
    await takeLock(session, (line) => {
      log(line);
      onStep(line);
    });
    const applied = await readApplied(session);
    const names = namesOf(applied);
    refuseNewer(names);
    refuseOtherText(applied);
    const expected = expectedVersion();
    const isCurrent = names.at(-1) === expected.migration && applied.code === expected.code;
    if (isCurrent && (await hasJobQueue(session))) return false;
    await act(session, { applied: names, codeHash: expected.code });
    return true;
  } finally {
    await session.end();
  }
}

// A restore leaves the job queue out (docs/restore.md).
async function hasJobQueue(session: Session): Promise<boolean> {
  return (await session.rows("select where to_regclass('graphile_worker.migrations') is not null")).length > 0;
}

export async function checkServer(session: Session): Promise<void> {
  await refuseSettings(session.rows);
  const [server] = await session.rows<{ version: number; encoding: string }>(
    "select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding",
  );
  // equivalent mutant (boundary): it differs on PostgreSQL 15.0 only
  if (server!.version < 150_000) throw new Error("PostgreSQL 15 or newer is needed");
  if (server!.encoding !== "UTF8") throw new Error(`the database must have the encoding UTF8, not ${server!.encoding}`);
}

/**
 * Waits by asking again. A statement that waits for the lock has a snapshot, for which `create index concurrently` of
 * the other migrate waits: a deadlock.
 */
export async function takeLock(session: Session, log: Log): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const [first] = await session.rows<{ is_mine: boolean }>("select pg_try_advisory_lock($1) as is_mine", [lockKey]);
    if (first!.is_mine) return;
    if (attempt === 1) log("waiting for another migrate");
    await sleep(100);
  }
}

function refuseNewer(applied: string[]): void {
  const known = listMigrations();
  const unknown = applied.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new Error(
      `the database is newer than this checkout, which does not know its migration ${unknown.join(", ")}`,
    );
  }
}

/** SQL states of two sessions that create the same role at once. */
const roleClash = ["42710", "23505", "XX000"];

/**
 * Roles belong to the whole cluster, so a migrate of another database may be creating them at the same time. A dry run
 * begins its transaction here.
 */
// equivalent mutant (literal 9): how often it tries is not promised
export async function makeRoles(session: Session, { isDryRun = false, retries = 9 } = {}): Promise<void> {
  try {
    if (isDryRun) await session.run(`begin; ${lockTimeout}`);
    await runScript(session, readScript("roles.sql"), "db/roles.sql");
  } catch (error) {
    if (!roleClash.includes(sqlState((error as Error).cause) ?? "") || retries === 0) throw error;
    if (isDryRun) await session.run("rollback");
    await makeRoles(session, { isDryRun, retries: retries - 1 });
  }
}

async function listRoles(session: Session): Promise<string[]> {
  const roles = await session.rows<{ name: string }>(
    "select rolname as name from pg_roles where starts_with(rolname, 'coupon_') order by 1",
  );
  return roles.map(({ name }) => name);
}

const namesOf = ({ migrations }: Applied): string[] => migrations.map(({ name }) => name);

/** Gives up a minute after the first lock. The minute begins again after an online migration, which may take hours. */
async function retryWhileLocked<T>(
  session: Session,
  { applied, log }: { applied: string[]; log: Log },
  act: (applied: string[]) => Promise<T>,
): Promise<T> {
  for (let deadline = 0; ;) {
    try {
      return await act(applied);
    } catch (error) {
      // lock_not_available, deadlock_detected
      if (!["55P03", "40P01"].includes(sqlState((error as Error).cause ?? error) ?? "")) throw error;
      await session.run("rollback; reset role; reset search_path");
      const before = applied.length;
      // The online migrations of the failed attempt are applied.
      applied = namesOf(await readApplied(session));
      if (deadline === 0) log("another session holds a lock: trying again");
      if (deadline === 0 || applied.length > before) deadline = performance.now() + giveUpAfterMs;
      if (performance.now() > deadline) throw error;
      // equivalent mutant (await, statement, literal, arithmetic, sign): the pause only spreads the attempts
      await sleep(100 + Math.random() * 400);
    }
  }
}

interface Changed {
  migrations: RunMigration[];
  loaded: Loaded;
}

/** The part of a migrate inside its transaction. */
async function change(
  session: Session,
  applied: string[],
  codeHash: string,
  options: { isDryRun?: boolean; onStep: Log },
): Promise<Changed> {
  const migrations = await runMigrations(session, applied, options);
  const loaded = await loadCode(session, { schemas: codeSchemas, files: listCode() }, options.onStep);
  await runScript(session, readScript("grants.sql"), "db/grants.sql");
  await recordCode(session, codeHash);
  return { migrations, loaded };
}

/**
 * Drops the unused functions once all calls that began before the change have ended, at most 5 s later: a call may run
 * for 3 s. If a migrate is killed before that, the next one drops them.
 */
async function dropWhenUnused(session: Session, routines: string[]): Promise<void> {
  if (routines.length === 0) return;
  const deadline = performance.now() + 5_000;
  const running =
    "select virtualtransaction as id from pg_locks where locktype = 'virtualxid' and pid <> pg_backend_pid()";
  const listRunning = async (): Promise<string[]> => (await session.rows<{ id: string }>(running)).map(({ id }) => id);
  const before = new Set(await listRunning());
  // equivalent mutant (await, statement, literal 20): it only looks less or more often
  while ((await listRunning()).some((id) => before.has(id)) && performance.now() < deadline) await sleep(20);
  // equivalent mutant (await): a session sends its statements in the order of the calls
  await session.run(begin);
  await dropRoutines(session, routines);
  await session.run("commit");
}

/** Keeps the previous version beside the new one. After a return to the previous version, only that one remains. */
async function recordCode(session: Session, codeHash: string): Promise<void> {
  const isBack = (await session.rows("select from core.code_version where sha256 = $1", [codeHash])).length > 0;
  await session.rows("delete from core.code_version where $1 or not is_current", [isBack]);
  await session.rows("update core.code_version set is_current = false");
  await session.rows("insert into core.code_version (sha256) values ($1)", [codeHash]);
}

// What a migrate promises: any number may run at once, the database is always at one version, others hardly wait for
// it, and a dry run changes nothing.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { mock } from "node:test";
import { runMigrations } from "graphile-worker";
import t, { type Test } from "tap";
import { type Address, formatUrl } from "../../src/config/database-address.ts";
import { openSession, formatRoleUrl } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import { expectedVersion, listCode, listMigrations } from "../../src/migration/db-files.ts";
import { dryRun, migrate } from "../../src/migration/migrate.ts";
import { asOwner } from "../support/as-owner.ts";
import { readCatalog } from "../support/catalog.ts";
import { change, root } from "../support/copy.ts";
import { addressOf, asAdmin, createEmptyDatabase, readRun, useDatabase } from "../support/database.ts";
import { fits } from "../support/fits.ts";
import { makeNextVersion } from "../support/next-version.ts";
import { runProgram } from "../support/program.ts";
import { snapshotTables } from "../support/table-snapshot.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

// A database whose code is not that of this checkout.
async function useOutdated(t: Test): Promise<Address> {
  const address = await useDatabase(t);
  await asOwner(address, "update core.code_version set sha256 = 'another' where is_current");
  return address;
}

function open(t: Test, address: Address): Session {
  const session = openSession(address, { name: "coupon test" });
  t.teardown(() => session.end());
  return session;
}

const readCode = (address: Address) =>
  asOwner<{ sha256: string }>(address, "select sha256 from core.code_version order by is_current desc");
const reach = (address: Address) => ({ DATABASE_URL: formatUrl(address) });

t.test("eight migrates at once on an empty database: all succeed, and one does the work", async (t) => {
  const { address, drop } = await createEmptyDatabase();
  t.teardown(drop);
  const results = await Promise.all(Array.from({ length: 8 }, () => runProgram("migrate", { env: reach(address) })));
  for (const { code, stderr } of results) t.strictSame({ code, stderr }, { code: 0, stderr: "" });
  t.equal(results.filter(({ stdout }) => stdout.includes("migrated: ")).length, 1);
  t.equal(results.filter(({ stdout }) => stdout.includes("up to date")).length, 7);
  const rows = await asOwner<{ name: string }>(address, "select name from core.migration order by position");
  t.strictSame(
    rows.map(({ name }) => name),
    listMigrations(),
  );
});

t.test("a database newer than the checkout, or with another encoding, is refused and left unchanged", async (t) => {
  const newer = await useOutdated(t);
  await asOwner(newer, "insert into core.migration (name, sha256) values ('999-future', '')");
  const { server, prefix } = readRun();
  const name = `${prefix}ascii`;
  const options = "template template0 encoding 'SQL_ASCII' locale 'C'";
  await asAdmin(server, (admin) => admin.rows(`create database "${name}" ${options}`));
  t.teardown(() => asAdmin(server, (admin) => admin.rows(`drop database "${name}"`)));
  for (const [address, message] of [
    [newer, /newer than this checkout.*999-future/],
    [addressOf(server, name), "the database must have the encoding UTF8, not SQL_ASCII"],
  ] as const) {
    const before = await readCatalog(address);
    await t.rejects(migrate(address), { message });
    t.strictSame(await readCatalog(address), before);
  }
  fits(t, await readCode(newer), [{ sha256: "another" }]);
});

t.test("the database knows the loaded code and the previous one; going back leaves only the older one", async (t) => {
  const address = await useDatabase(t);
  const { migration, code } = expectedVersion();
  const read = async () => ({ ...(await asOwner(address, "select migration, code from rules.read_version()"))[0]! });
  t.strictSame(await read(), { migration, code });
  await asOwner(address, "update core.code_version set sha256 = 'older'");
  await migrate(address);
  t.strictSame(await read(), { migration, code: `${code} older` });
  await asOwner(address, "update core.code_version set sha256 = 'passing' where is_current");
  await asOwner(address, "update core.code_version set sha256 = $1 where not is_current", [code]);
  await migrate(address);
  t.strictSame(await read(), { migration, code }, "the newer version is forgotten");
});

const ignore = () => {};
const count = listCode().length;
const lastStep = `loading functions and views: ${count} of ${count}`;

t.test("a dry run says what a migrate would do, and changes nothing", async (t) => {
  const address = await useOutdated(t);
  await asOwner(address, "create function rules.forgotten() returns int language sql immutable return 1");
  await asOwner(address, "create view report.forgotten as select rules.forgotten() as one");
  await asOwner(address, "create function jobs.forgotten(p_a text) returns int language sql immutable return 1");
  const before = await readCatalog(address);
  const run = async (act: typeof dryRun) => {
    const [lines, steps] = [[] as string[], [] as string[]];
    const isDone = await act(
      address,
      (line) => lines.push(line),
      (step) => steps.push(step),
    );
    return { isDone, lines, steps };
  };
  const tried = await run(dryRun);
  t.strictSame(tried.lines, [
    `would load ${count} functions and views`,
    "would drop report.forgotten",
    "would drop rules.forgotten()",
    "would keep jobs.forgotten(p_a text) for one more version",
    "dry run: nothing was changed",
  ]);
  t.strictSame([tried.isDone, tried.steps.length, tried.steps.at(-1)], [true, count, lastStep]);
  t.strictSame(await readCatalog(address), before);

  const done = await run(migrate);
  t.strictSame([done.isDone, done.lines], [true, [`no new migration, ${count} functions and views loaded`]]);
  t.strictSame(done.steps.slice(-2), [lastStep, "waiting for calls of functions that are dropped"]);
  for (const act of [migrate, dryRun]) fits(t, await run(act), { isDone: false, lines: [] }, "it is up to date");
});

t.test("a session that changes the rights on the database meanwhile makes nothing fail", async (t) => {
  for (const act of [migrate, dryRun]) {
    const address = await useOutdated(t);
    const name = address.database!;
    const other = open(t, address);
    await other.run(`begin; grant temporary on database "${name}" to coupon_report`);
    const running = act(address, ignore, ignore);
    const isBlocked = "select from pg_stat_activity where datname = $1 and cardinality(pg_blocking_pids(pid)) > 0";
    // Not by `other`: within a transaction, the list of sessions does not change.
    const countBlocked = () => asAdmin(address, async (admin) => (await admin.rows(isBlocked, [name])).length);
    await waitUntil("the migrate to wait", async () => (await countBlocked()) > 0);
    await other.run("commit");
    t.equal(await waitFor("the migrate", running), true);
    const current = "select from core.code_version where sha256 = 'another' and is_current";
    t.equal((await asOwner(address, current)).length, act === migrate ? 0 : 1);
  }
});

// Under load, migrate also waits for other locks, briefly.
const isWaiting = `select from pg_locks l join pg_stat_activity a using (pid)
  where a.datname = current_database() and a.application_name = 'coupon migrate'
    and not l.granted and l.relation = 'report.coupon'::regclass`;

t.test("a migrate does not block others behind a long-held lock, and succeeds once the lock is free", async (t) => {
  const address = await useOutdated(t);
  const [reader, other] = [open(t, address), open(t, address)];
  // Like a report that runs for an hour: `create or replace view` has to wait until it ends.
  await reader.run("begin; select from report.coupon limit 1");
  const said: string[] = [];
  const migrated = migrate(address, (line) => said.push(line));
  for (let round = 1; round <= 2; round += 1) {
    await waitUntil("migrate to wait", async () => (await other.rows(isWaiting)).length > 0, { everyMs: 0 });
    // This one waits behind migrate, which waits for the reader, until migrate gives way.
    await waitFor("migrate to give way", other.rows("select from report.coupon limit 1"), { withinMs: 30_000 });
  }
  fits(t, await readCode(address), [{ sha256: "another" }], "nothing was changed");
  await reader.end();
  await migrated;
  t.strictSame(said.slice(0, -1), ["another session holds a lock: trying again"], "said once, before what it did");
  fits(t, await readCode(address), [{ sha256: expectedVersion().code }, { sha256: "another" }]);
});

t.test("a migrate gives up when a lock was held for a minute, and changes nothing", async (t) => {
  const address = await useOutdated(t);
  const [reader, other] = [open(t, address), open(t, address)];
  await reader.run("begin; select from report.coupon limit 1");
  const clock = performance.now.bind(performance);
  let aheadMs = 0;
  mock.method(performance, "now", () => clock() + aheadMs);
  t.teardown(() => mock.restoreAll());
  const said: string[] = [];
  const migrated = migrate(address, (line) => said.push(line)).then(
    () => "migrated",
    (error: Error) => error.message,
  );
  await waitUntil("the first attempt to fail", () => said.length === 1);
  aheadMs = 50_000;
  await waitUntil("the next one", async () => (await other.rows(isWaiting)).length > 0, { everyMs: 0 });
  aheadMs = 60_000;
  t.match(await waitFor("the migrate to give up", migrated, { withinMs: 20_000 }), /lock timeout \[55P03\]$/);
  fits(t, await readCode(address), [{ sha256: "another" }]);
});

t.test("a migrate waits at most 200 ms for a lock, whatever it changes, and checks PL/pgSQL strictly", async (t) => {
  const address = await useOutdated(t);
  const login = open(t, address);
  // Runs before each statement that changes the schema. The login itself only sets rights of the database, which
  // lock no table.
  await login.run(`
    create schema noted;
    grant usage on schema noted to public;
    create table noted.changes (role name, wait text, checks text);
    grant insert on noted.changes to public;
    create function noted.note() returns event_trigger language plpgsql as $$ begin
      insert into noted.changes values (
        current_user, current_setting('lock_timeout'), current_setting('plpgsql.extra_errors', true)); end $$;
    create event trigger note on ddl_command_start execute function noted.note()`);
  await migrate(address);
  const waits = await login.rows(
    "select wait, checks, count(*) > 100 as are_many from noted.changes where role <> session_user group by 1, 2",
  );
  t.strictSame([...waits], [{ wait: "200ms", checks: "all", are_many: true }]);
});

t.test("an online migration that takes longer than the minute does not use it up", async (t) => {
  const address = await useDatabase(t);
  const { folder, migrations, remove } = makeNextVersion();
  t.teardown(remove);
  const [before, online, after] = migrations.map((name) => path.join(folder, `db/migrations/${name}.sql`));
  // No rollback takes back a number of a sequence: the first and the third use of a lock fail.
  await asOwner(address, "create sequence core.uses");
  const useLock = "do $$ begin if nextval('core.uses') in (1, 3) then raise lock_not_available; end if; end $$;";
  writeFileSync(before!, useLock);
  writeFileSync(online!, "select pg_sleep(1.1);");
  writeFileSync(after!, useLock);
  change(folder, [
    { file: "src/migration/migrate.ts", find: "giveUpAfterMs = 60_000", replace: "giveUpAfterMs = 1_000" },
  ]);
  const stdout = /^another session holds a lock: trying again\nmigrated: 3 migrations, /;
  fits(t, await runProgram("migrate", { folder, env: reach(address) }), { code: 0, stdout });
});

t.test("a migrate, which may run as a superuser, runs no code that somebody else created", async (t) => {
  const address = await useOutdated(t);
  const login = open(t, address);
  // In a schema with the name of the login, which is first in the default search_path, and in the schema of the worker.
  await login.run(`
    do $$ begin execute format('create schema %I; grant usage on schema %1$I to public', session_user); end $$;
    set search_path = "$user", pg_catalog;
    create table ran (what text);
    create function trap(what text) returns boolean language plpgsql as $$
      begin execute 'insert into ran values ($1)' using what; return true; end $$;
    create function pg_try_advisory_lock(text) returns boolean language sql return trap('lock');
    create function format(text, name) returns text language sql return trap('format')::text;
    alter table graphile_worker.migrations rename to migrations_real;
    create view graphile_worker.migrations as select * from graphile_worker.migrations_real where trap('view');
    alter view graphile_worker.migrations owner to coupon_worker`);
  await migrate(address);
  t.strictSame([...(await login.rows("select what from ran"))], []);
});

t.test("db/tables.sql is the result of the migrations, and the worker owns the schema of its queue", async (t) => {
  const address = await useDatabase(t);
  t.equal(await snapshotTables(address), readFileSync(path.join(root, "db/tables.sql"), "utf8"), "npm run snapshot");
  await runMigrations({ connectionString: formatRoleUrl(address, "coupon_worker") });
  const owners = `select distinct pg_get_userbyid(relowner) as owner from pg_class
    where relnamespace = 'graphile_worker'::regnamespace`;
  t.strictSame([...(await asOwner(address, owners))], [{ owner: "coupon_worker" }]);
});

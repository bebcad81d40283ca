// What `npm run migrate` promises: any number may run at once, and the database is always at one version.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { mock } from "node:test";
import { runMigrations } from "graphile-worker";
import t from "tap";
import { expectedVersion, listMigrations } from "../../src/migration/db-files.ts";
import { openSession, formatRoleUrl } from "../../src/database/connect.ts";
import { type Address, formatUrl } from "../../src/common/database-address.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { asOwner } from "../support/as-owner.ts";
import { change, root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { makeNextVersion } from "../support/next-version.ts";
import { snapshotTables } from "../support/table-snapshot.ts";
import { createDatabase, createEmptyDatabase } from "../support/database.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

/** Runs the program as an operator does. */
function runMigrate(address: Address, folder = root): Promise<{ code: number | null; output: string }> {
  const child = spawn("bin/coupon", ["migrate"], {
    cwd: folder,
    env: { ...process.env, DATABASE_URL: formatUrl(address) },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      output += chunk;
    });
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, output })));
}

t.test("Eight migrates at once on an empty database: all succeed, and one does the work", async (t) => {
  const { address, drop } = await createEmptyDatabase();
  t.teardown(drop);
  const results = await Promise.all(Array.from({ length: 8 }, () => runMigrate(address)));
  t.strictSame(
    results.map(({ code }) => code),
    Array(8).fill(0),
    results.map(({ output }) => output).join(""),
  );
  t.equal(results.filter(({ output }) => output.includes("migrated: ")).length, 1);
  t.equal(results.filter(({ output }) => output.includes("up to date")).length, 7);
  t.strictSame(
    (await asOwner<{ name: string }>(address, "select name from core.migration order by position")).map(
      ({ name }) => name,
    ),
    listMigrations(),
  );
});

t.test("The database reports its version, which is that of this checkout", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  t.strictSame([...(await asOwner(address, "select migration, code from gate.read_version()"))], [expectedVersion()]);
});

t.test("A database newer than the checkout is refused and left unchanged", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  await asOwner(address, "insert into core.migration (name, sha256) values ('999-future', '')");
  await asOwner(address, "update core.code_version set sha256 = 'another'");
  await t.rejects(migrate(address), { message: /newer than this checkout.*999-future/ });
  t.strictSame([...(await asOwner(address, "select sha256 from core.code_version"))], [{ sha256: "another" }]);
});

t.test("The database knows the loaded code and the previous one; going back leaves only the older one", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const { code } = expectedVersion();
  const read = async (): Promise<string> =>
    (await asOwner<{ code: string }>(address, "select code from gate.read_version()"))[0]!.code;
  t.equal(await read(), code);
  await asOwner(address, "update core.code_version set sha256 = 'older'");
  await migrate(address);
  t.equal(await read(), `${code} older`);
  await asOwner(address, "update core.code_version set sha256 = 'passing' where is_current");
  await asOwner(address, "update core.code_version set sha256 = $1 where not is_current", [code]);
  await migrate(address);
  t.equal(await read(), code, "the newer version is forgotten");
});

// Under load, migrate also waits for other locks, briefly.
const isWaiting = `select from pg_locks l join pg_stat_activity a using (pid)
  where a.datname = current_database() and a.application_name = 'coupon migrate'
    and not l.granted and l.relation = 'report.coupon'::regclass`;

t.test(
  "A migrate does not wait for a long-held lock: others go on, and it succeeds once the lock is free",
  async (t) => {
    const { address, drop } = await createDatabase();
    t.teardown(drop);
    await asOwner(address, "update core.code_version set sha256 = 'another'");
    const reader = openSession(address, { name: "coupon test" });
    // Like a report that runs for an hour: `create or replace view` has to wait until it ends.
    await reader.run("begin; select from report.coupon limit 1");
    const other = openSession(address, { name: "coupon test" });
    const said: string[] = [];
    const migrated = migrate(address, (line) => said.push(line));
    for (let round = 1; round <= 2; round += 1) {
      await waitUntil("migrate to wait", async () => (await other.rows(isWaiting)).length > 0, { everyMs: 0 });
      // This one waits behind migrate, which waits for the reader, until migrate gives way.
      await waitFor("migrate to give way", other.rows("select from report.coupon limit 1"), { withinMs: 30_000 });
    }
    fits(
      t,
      await asOwner(address, "select sha256 from core.code_version"),
      [{ sha256: "another" }],
      "nothing was changed",
    );
    await reader.end();
    await migrated;
    t.strictSame(said.slice(0, -1), ["another session holds a lock: trying again"], "said once, before what it did");
    await other.end();
    t.strictSame(
      (await asOwner<{ migration: string }>(address, "select migration from gate.read_version()"))[0]!.migration,
      expectedVersion().migration,
    );
  },
);

t.test("A migrate waits at most 200 ms for a lock, whatever it changes", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  await asOwner(address, "update core.code_version set sha256 = 'another'");
  const login = openSession(address, { name: "coupon test" });
  t.teardown(() => login.end());
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

t.test("A migrate gives up when a lock was held for a minute, and changes nothing", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  await asOwner(address, "update core.code_version set sha256 = 'another'");
  const open = () => openSession(address, { name: "coupon test" });
  const [reader, other] = [open(), open()];
  t.teardown(() => Promise.all([reader.end(), other.end()]));
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
  fits(t, await asOwner(address, "select sha256 from core.code_version"), [{ sha256: "another" }]);
});

t.test("An online migration that takes longer than the minute does not use it up", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
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
  const { code, output } = await runMigrate(address, folder);
  t.equal(code, 0, output);
  t.match(output, /^another session holds a lock: trying again\nmigrated: 3 migrations, /);
});

t.test("A migrate, which may run as a superuser, runs no code that somebody else created", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const login = openSession(address, { name: "coupon test" });
  t.teardown(() => login.end());
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
  await asOwner(address, "update core.code_version set sha256 = 'another' where is_current");
  await migrate(address);
  t.strictSame([...(await login.rows("select what from ran"))], []);
});

t.test("The worker's role owns the schema of graphile-worker", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  await runMigrations({ connectionString: formatRoleUrl(address, "coupon_worker") });
  const owners = await asOwner<{ owner: string }>(
    address,
    `
    select distinct pg_get_userbyid(c.relowner) as owner from pg_class c
    where c.relnamespace = (select oid from pg_namespace where nspname = 'graphile_worker')`,
  );
  t.strictSame([...owners], [{ owner: "coupon_worker" }]);
});

t.test("db/tables.sql is the result of the migrations (npm run snapshot)", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  t.equal(await snapshotTables(address), readFileSync(path.join(root, "db/tables.sql"), "utf8"));
});

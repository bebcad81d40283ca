// What `npm run migrate` promises: any number at once, one version or the other, nothing left over.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { runMigrations } from "graphile-worker";
import t from "tap";
import { expectedVersion, listCode, listMigrations } from "../../src/migration/db-files.ts";
import { openSession, formatRoleUrl } from "../../src/database/connect.ts";
import { type Address, formatUrl } from "../../src/common/database-address.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { snapshotTables } from "../support/table-snapshot.ts";
import { createDatabase, createEmptyDatabase } from "../support/database.ts";

const root = path.resolve(import.meta.dirname, "../..");

async function asOwner<T>(address: Address, text: string, params: unknown[] = []): Promise<T[]> {
  const session = openSession(address, { name: "coupon test", role: "coupon_owner" });
  try {
    return await session.rows<T>(text, params);
  } finally {
    await session.end();
  }
}

/** The program itself, as an operator starts it. */
function runMigrate(address: Address): Promise<{ code: number | null; output: string }> {
  const child = spawn("node", ["src/commands/migrate.ts"], {
    cwd: root,
    env: { ...process.env, DATABASE_URL: formatUrl(address) },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      output += chunk;
    });
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, output })));
}

t.test("eight at the same moment on an empty database: all succeed, one does the work", async (t) => {
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

t.test("the database says which version it has, and that is this checkout", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  t.strictSame([...(await asOwner(address, "select migration, code from gate.read_version()"))], [expectedVersion()]);
});

t.test("a database newer than the checkout is refused and left alone", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  await asOwner(address, "insert into core.migration (name) values ('999-future')");
  await asOwner(address, "update core.code_version set sha256 = 'another'");
  await t.rejects(migrate(address), { message: /newer than this checkout.*999-future/ });
  t.strictSame([...(await asOwner(address, "select sha256 from core.code_version"))], [{ sha256: "another" }]);
});

t.test("what the repository no longer has goes, what it has comes back, and nobody else is cut off", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const markOld = (): Promise<unknown> =>
    asOwner(address, "update core.code_version set sha256 = 'another ' || clock_timestamp() where is_current");
  const listNames = async (): Promise<string[]> =>
    (
      await asOwner<{ name: string }>(
        address,
        `
      select n.nspname || '.' || p.proname as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where n.nspname in ('rules', 'api', 'gate', 'jobs', 'admin', 'report')
      union all select schemaname || '.' || viewname from pg_views
      where schemaname in ('rules', 'api', 'gate', 'jobs', 'admin', 'report') order by 1`,
      )
    ).map(({ name }) => name);
  const expected = listCode()
    .map(({ schema, name }) => `${schema}.${name}`)
    .sort();
  t.strictSame((await listNames()).sort(), expected);

  await asOwner(address, "create function rules.forgotten() returns int language sql immutable return 1");
  await asOwner(address, "create view report.forgotten as select rules.forgotten() as one");
  await asOwner(address, "drop function gate.read_version()");
  // Another result type than the file's: replacing alone would fail.
  await asOwner(address, "create function gate.read_version() returns int language sql immutable return 1");
  await markOld();
  await migrate(address);
  t.strictSame((await listNames()).sort(), expected);
  const { migration, code } = expectedVersion();
  t.match(await asOwner(address, "select migration, code from gate.read_version()"), [
    { migration, code: new RegExp(`^${code} another`) },
  ]);

  await asOwner(address, "create function rules.forgotten() returns int language sql immutable return 1");
  await asOwner(address, "create view core.theirs as select rules.forgotten() as one");
  await markOld();
  await t.rejects(migrate(address), { message: /cannot drop.*2BP01.*\n.*core\.theirs/s });
  t.equal((await asOwner(address, "select one from core.theirs")).length, 1, "nothing was dropped");
});

t.test("what programs call stays for one version after the repository has dropped it", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const exists = async (): Promise<boolean> =>
    (await asOwner(address, "select from pg_proc where proname = 'forgotten'")).length > 0;
  const moveOn = async (from: string): Promise<void> => {
    await asOwner(address, "update core.code_version set sha256 = $1 where is_current", [from]);
    await migrate(address);
  };
  await asOwner(address, "create function jobs.forgotten() returns int language sql immutable return 1");
  await asOwner(address, "create function jobs.list_due_batches(text) returns int language sql immutable return 1");
  await moveOn("one");
  t.ok(await exists());
  t.equal(
    (await asOwner(address, "select from pg_proc where proname = 'list_due_batches'")).length,
    1,
    "but not beside another of its name",
  );
  await moveOn("two");
  t.notOk(await exists());
});

t.test("a call that is in the middle of an old function still finds what that one calls", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  await asOwner(address, "create function rules.gone() returns int language sql immutable return 1");
  await asOwner(
    address,
    `create function jobs.under_way() returns int language plpgsql volatile as
    'begin perform pg_advisory_xact_lock(4711); return rules.gone(); end'`,
  );
  await asOwner(address, "update core.code_version set sha256 = 'another'");
  const [psql, caller] = [
    openSession(address, { name: "coupon test" }),
    openSession(address, { name: "coupon caller" }),
  ];
  await psql.rows("select pg_advisory_lock(4711)");
  const answer = caller.rows("select jobs.under_way() as one").catch((error: unknown) => error);
  while (
    (
      await psql.rows(
        "select from pg_stat_activity where application_name = 'coupon caller' and cardinality(pg_blocking_pids(pid)) > 0",
      )
    ).length === 0
  );
  const migrated = migrate(address);
  while ((await psql.rows("select from core.code_version where is_current and sha256 <> 'another'")).length === 0);
  await psql.rows("select pg_advisory_unlock(4711)");
  t.match(await answer, [{ one: 1 }]);
  await migrated;
  t.equal((await psql.rows("select from pg_proc where proname = 'gone'")).length, 0);
  await Promise.all([psql.end(), caller.end()]);
});

t.test("the database knows the code before the loaded one, and who goes back to it is back", async (t) => {
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
  t.equal(await read(), code, "nothing is left of the newer one");
});

t.test(
  "a lock that somebody holds for long is not waited for: others go on, and migrate comes when it is free",
  async (t) => {
    const { address, drop } = await createDatabase();
    t.teardown(drop);
    await asOwner(address, "update core.code_version set sha256 = 'another'");
    const reader = openSession(address, { name: "coupon test" });
    // As a report that runs for an hour: create or replace view has to wait for its end.
    await reader.run("begin; select from report.coupon limit 1");
    const other = openSession(address, { name: "coupon test" });
    const isWaiting =
      "select from pg_stat_activity where datname = current_database() and application_name = 'coupon migrate' and cardinality(pg_blocking_pids(pid)) > 0";
    const said: string[] = [];
    const migrated = migrate(address, (line) => said.push(line));
    for (let round = 1; round <= 2; round += 1) {
      while ((await other.rows(isWaiting)).length === 0);
      // Behind migrate, which waits for the reader: until migrate gives way.
      const since = performance.now();
      await other.rows("select from report.coupon limit 1");
      t.ok(performance.now() - since < 2_000);
    }
    t.strictSame(said, ["another session holds a lock: trying again"]);
    t.match(
      await asOwner(address, "select sha256 from core.code_version"),
      [{ sha256: "another" }],
      "nothing of it has happened",
    );
    await reader.end();
    await migrated;
    await other.end();
    t.strictSame(
      (await asOwner<{ migration: string }>(address, "select migration from gate.read_version()"))[0]!.migration,
      expectedVersion().migration,
    );
  },
);

t.test("migrate, who may be a superuser, runs nothing that somebody else made", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const login = openSession(address, { name: "coupon test" });
  t.teardown(() => login.end());
  // Named as the login, as a schema that stands first in a usual search_path; and in what the worker owns.
  await login.run(`
    do $$ begin execute format('create schema %I; grant usage on schema %1$I to public', session_user); end $$;
    set search_path = "$user", pg_catalog;
    create table ran (what text);
    create function trap(what text) returns boolean language plpgsql as $$ begin execute 'insert into ran values ($1)' using what; return true; end $$;
    create function pg_try_advisory_lock(text) returns boolean language sql return trap('lock');
    create function format(text, name) returns text language sql return trap('format')::text;
    alter table graphile_worker.migrations rename to migrations_real;
    create view graphile_worker.migrations as select * from graphile_worker.migrations_real where trap('view');
    alter view graphile_worker.migrations owner to coupon_worker`);
  await asOwner(address, "update core.code_version set sha256 = 'another' where is_current");
  await migrate(address);
  t.strictSame([...(await login.rows("select what from ran"))], []);
});

t.test("graphile-worker owns its schema through the role of the worker", async (t) => {
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

t.test("db/tables.sql is what the migrations make (npm run snapshot)", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  t.equal(await snapshotTables(address), readFileSync(path.join(root, "db/tables.sql"), "utf8"));
});

// What a migrate does with views and functions that the repository no longer has, and with a script that fails.
import t from "tap";
import type { Address } from "../../src/config/database-address.ts";
import { openSession } from "../../src/database/connect.ts";
import { expectedVersion, listCode } from "../../src/migration/db-files.ts";
import { runScript } from "../../src/migration/load-code.ts";
import { dryRun, migrate } from "../../src/migration/migrate.ts";
import { asOwner } from "../support/as-owner.ts";
import { readCatalog } from "../support/catalog.ts";
import { useDatabase } from "../support/database.ts";
import { fits } from "../support/fits.ts";
import { waitUntil } from "../support/wait-until.ts";

const listNames = async (address: Address): Promise<string[]> => {
  const schemas = "('rules', 'api', 'gate', 'jobs', 'admin', 'report', 'console', 'portal')";
  const rows = await asOwner<{ name: string }>(
    address,
    `select pronamespace::regnamespace || '.' || proname as name from pg_proc
     where pronamespace::regnamespace::text in ${schemas}
     union all select schemaname || '.' || viewname from pg_views where schemaname in ${schemas}`,
  );
  return rows.map(({ name }) => name).sort();
};

t.test("a migrate drops what the repository no longer has, restores the rest, and spares the others", async (t) => {
  const address = await useDatabase(t);
  const markOld = () =>
    asOwner(address, "update core.code_version set sha256 = 'another ' || clock_timestamp() where is_current");
  const expected = listCode()
    .map(({ schema, name }) => `${schema}.${name}`)
    .sort();
  t.strictSame(await listNames(address), expected);

  await asOwner(address, "create function rules.forgotten() returns int language sql immutable return 1");
  await asOwner(address, "create view report.forgotten as select rules.forgotten() as one");
  await asOwner(address, "drop function rules.read_version()");
  // Its result type differs from the file's, so `or replace` fails.
  await asOwner(address, "create function rules.read_version() returns int language sql immutable return 1");
  // Nor can it rename a column of a view, and report.invariants uses this one.
  await asOwner(address, "alter view rules.entry_is_posted_once rename column invariant to law");
  await markOld();
  await migrate(address);
  t.strictSame(await listNames(address), expected);
  const { migration, code } = expectedVersion();
  const found = { migration, code: new RegExp(`^${code} another`) };
  fits(t, await asOwner(address, "select migration, code from rules.read_version()"), [found]);

  await asOwner(address, "create function rules.forgotten() returns int language sql immutable return 1");
  await asOwner(address, "create view core.theirs as select rules.forgotten() as one");
  await markOld();
  const before = await readCatalog(address);
  const ignore = () => {};
  const message = /cannot drop what db\/code no longer has.*2BP01.*\n.*core\.theirs/s;
  for (const act of [dryRun, migrate]) await t.rejects(act(address, ignore, ignore), { message });
  t.strictSame(await readCatalog(address), before, "nothing was dropped");
});

t.test("a function that programs call stays for one version after the repository drops it", async (t) => {
  const address = await useDatabase(t);
  const moveOn = async (from: string): Promise<string[]> => {
    await asOwner(address, "update core.code_version set sha256 = $1 where is_current", [from]);
    await migrate(address);
    const forgotten = "select pronamespace::regnamespace::text as name from pg_proc where proname = 'forgotten'";
    return (await asOwner<{ name: string }>(address, forgotten)).map(({ name }) => name).sort();
  };
  for (const schema of ["admin", "api", "gate", "jobs", "rules"])
    await asOwner(address, `create function ${schema}.forgotten() returns int language sql immutable return 1`);
  await asOwner(address, "create function jobs.list_due_batches(text) returns int language sql immutable return 1");
  t.strictSame(await moveOn("one"), ["admin", "gate", "jobs"]);
  const twins = await asOwner(address, "select from pg_proc where proname = 'list_due_batches'");
  t.equal(twins.length, 1, "a function with the name of a file is dropped");
  t.strictSame(await moveOn("two"), []);
});

t.test("a call that runs an old function still finds the functions that it calls", async (t) => {
  const address = await useDatabase(t);
  await asOwner(address, "create function rules.gone() returns int language sql immutable return 1");
  await asOwner(
    address,
    `create function jobs.under_way() returns int language plpgsql volatile as
    'begin perform pg_advisory_xact_lock(4711); return rules.gone(); end'`,
  );
  await asOwner(address, "update core.code_version set sha256 = 'another'");
  const [psql, caller] = ["coupon test", "coupon caller"].map((name) => openSession(address, { name }));
  t.teardown(() => Promise.all([psql!.end(), caller!.end()]));
  await psql!.rows("select pg_advisory_lock(4711)");
  const answer = caller!.rows("select jobs.under_way() as one").catch((error: unknown) => error);
  const isBlocked = "application_name = 'coupon caller' and cardinality(pg_blocking_pids(pid)) > 0";
  const blocked = `select from pg_stat_activity where ${isBlocked}`;
  await waitUntil("the call to be blocked", async () => (await psql!.rows(blocked)).length > 0);
  const migrated = migrate(address);
  const isLoaded = "select from core.code_version where is_current and sha256 <> 'another'";
  await waitUntil("the new code", async () => (await psql!.rows(isLoaded)).length > 0);
  await psql!.rows("select pg_advisory_unlock(4711)");
  fits(t, await answer, [{ one: 1 }]);
  await migrated;
  t.equal((await psql!.rows("select from pg_proc where proname = 'gone'")).length, 0);
});

t.test("a script that fails is named with the line of the mistake, and with details that hold no values", async (t) => {
  const session = openSession(await useDatabase(t), { name: "coupon test" });
  t.teardown(() => session.end());
  const head = "select 1;\n\n";
  const f = "create function pg_temp.f() returns int language plpgsql as";
  const raise = "do $$ begin raise exception 'no' using errcode = 'P0042', detail = 'a value'; end $$";
  const dependent = "create table t (a int);\ncreate view v as select a from t;\ndrop table t";
  const rows: [script: string, message: string][] = [
    ["selekt 1", 'a.sql:1: syntax error at or near "selekt" [42601]'],
    [`${head}select 2\n  frm x\n;`, 'a.sql:4: syntax error at or near "x" [42601]'],
    [`${head}\nselect nothing;`, 'a.sql:4: column "nothing" does not exist [42703]'],
    // The line in the body counts from its opening quote.
    [
      `${head}${f} $body$\nbegin\n  raise exception '%';\nend $body$`,
      "a.sql:5: too few parameters specified for RAISE [42601]",
    ],
    // No place is known.
    [`${head}select 1 / 0`, "a.sql:1: division by zero [22012]"],
    [
      `${head}create table t (a int check (a > 0));\ninsert into t values (-17)`,
      'a.sql:1: new row for relation "t" violates check constraint "t_a_check" [23514]',
    ],
    [`${head}${raise}`, "a.sql:1: no [P0042]"],
    [
      `${head}${dependent}`,
      "a.sql:1: cannot drop table t because other objects depend on it [2BP01]\n  view v depends on table t",
    ],
  ];
  for (const [script, message] of rows) {
    await session.run("begin; set local search_path = pg_temp");
    await t.rejects(runScript(session, script, "a.sql"), { name: "ScriptError", message });
    await session.run("rollback");
  }
  await session.end();
  const error = await runScript(session, "select 1", "a.sql").catch((reason: unknown) => reason);
  t.notMatch((error as Error).message, /a\.sql/, "an error that is not the script's stays as it is");
});

// npm run migrate as a program: what its flags print of each kind of database, and what it refuses.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { command } from "../../src/commands/migrate.ts";
import { type Address, formatUrl } from "../../src/config/database-address.ts";
import { openSession } from "../../src/database/connect.ts";
import { listCode, listMigrations } from "../../src/migration/db-files.ts";
import { asOwner } from "../support/as-owner.ts";
import { readCatalog } from "../support/catalog.ts";
import { root } from "../support/copy.ts";
import { createDatabase, createEmptyDatabase } from "../support/database.ts";
import { fits } from "../support/fits.ts";
import { makeNextVersion } from "../support/next-version.ts";
import { runProgram } from "../support/program.ts";
import { startTemporaryServer } from "../support/temporary-server.ts";

const next = makeNextVersion();
t.teardown(next.remove);

function run(address: Address, args: string[] = [], folder = root) {
  return runProgram("migrate", { args, env: { DATABASE_URL: formatUrl(address) }, folder });
}

t.test("--status says what is applied and pending, of each kind of database, and changes nothing", async (t) => {
  const empty = await createEmptyDatabase();
  t.teardown(empty.drop);
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  // The lines after the applied migrations, and the document of the same facts.
  const check = async (of: Address, lastLines: string[], code: string, isUpToDate: boolean) => {
    const before = await readCatalog(of);
    const [text, json] = await Promise.all([run(of, ["--status"]), run(of, ["--status", "--json"])]);
    const known = "select name, applied_at as at from core.migration order by position";
    const rows = of === empty.address ? [] : await asOwner<{ name: string; at: Date }>(of, known);
    const applied = rows.map(({ name, at }) => `applied  ${name}  ${at.toISOString()}`);
    t.strictSame(text, { code: 0, stdout: `${[...applied, ...lastLines].join("\n")}\n`, stderr: "" });
    const migrations = [
      ...rows.map(({ name, at }) => {
        return { name, status: name === "999-future" ? "unknown" : "applied", applied_at: at.toISOString() };
      }),
      ...listMigrations()
        .filter((name) => !rows.some((row) => row.name === name))
        .map((name) => ({ name, status: "pending", applied_at: null })),
    ];
    t.strictSame(JSON.parse(json.stdout), { migrations, code, is_up_to_date: isUpToDate });
    t.strictSame(await readCatalog(of), before);
  };
  const advice = "npm run migrate brings the database up to date";
  const pending = listMigrations().map((name) => `pending  ${name}`);
  await check(empty.address, [...pending, "code     not loaded", advice], "not loaded", false);
  await check(address, ["code     current", "database is up to date"], "current", true);
  await asOwner(address, "update core.code_version set sha256 = sha256 || ' another' where is_current");
  await check(address, ["code     another version", advice], "another version", false);
  await asOwner(address, "update core.code_version set sha256 = replace(sha256, ' another', '')");
  await asOwner(address, "insert into core.migration (name, sha256) values ('999-future', '')");
  const newer = "the database is newer than this checkout, which does not know its migration 999-future";
  await check(address, ["code     current", newer], "current", false);
});

t.test("--dry-run prints what would be done; an online migration is applied once its index is valid", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const [first, online, last] = next.migrations;
  // As after a build that failed.
  const superuser = openSession(address, { name: "coupon test" });
  t.teardown(() => superuser.end());
  await superuser.run(`
  create index redemption_by_channel on core.redemption (started_at);
  update pg_index set indisvalid = false where indexrelid = 'core.redemption_by_channel'::regclass`);

  const before = await readCatalog(address);
  const { code, stdout, stderr } = await run(address, ["--dry-run"], next.folder);
  t.equal(code, 0, stderr);
  t.equal(
    stdout,
    `would apply ${first}
would apply ${online} online, outside the transaction: not tried in this dry run
would apply ${last}
would load ${listCode().length} functions and views
would drop rules.find_lock(p_call core.call, p_coupon_id uuid)
would keep jobs.end_batch_lease(p_tenant_id integer, p_batch_id integer, p_holder uuid) for one more version
dry run: nothing was changed
`,
  );
  t.strictSame(await readCatalog(address), before);

  const listNew = async () => {
    const text = "select name from core.migration where name = any ($1) order by position";
    return (await asOwner<{ name: string }>(address, text, [next.migrations])).map(({ name }) => name);
  };
  fits(t, await run(address, [], next.folder), {
    code: 1,
    stderr: /^102-channel-index: the index core.redemption_by_channel is invalid, .*"drop index concurrently core.re/,
  });
  t.strictSame(await listNew(), [first], "what came before it stays");
  await superuser.run("drop index concurrently core.redemption_by_channel");
  await asOwner(address, "create function rules.forgotten() returns int language sql immutable return 1");
  await asOwner(address, "create view core.theirs as select rules.forgotten() as one");
  fits(t, await run(address, [], next.folder), { code: 1, stderr: /cannot drop what db\/code no longer has/ });
  t.strictSame(await listNew(), [first, online], "the index is there, so its migration is not tried again");
  await asOwner(address, "drop view core.theirs");
  fits(t, await run(address, [], next.folder), { code: 0, stdout: /^migrated: 1 migrations,/ });
  t.strictSame(await listNew(), [first, online, last]);
});

t.test("a database made by other text of a migration is refused, and the sentence names the migration", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const before = await readCatalog(address);
  const refusal = (file: string) => ({
    code: 1,
    stdout: "",
    stderr:
      `this database was made by other SQL than this checkout has in db/migrations/${file}: ` +
      "use the checkout that made it, or a new database\n",
  });
  const name = listMigrations().at(-1)!;
  const file = path.join(next.folder, `db/migrations/${name}.sql`);
  // Only a comment differs.
  writeFileSync(file, `${readFileSync(file, "utf8")}-- changed\n`);
  for (const args of [[], ["--dry-run"]])
    t.strictSame(await run(address, args, next.folder), refusal(`${name}.sql`), args.join());
  writeFileSync(path.join(next.folder, "db/migrations/001-schemas.sql"), "");
  t.strictSame(await run(address, ["--status"], next.folder), refusal("001-schemas.sql and 1 more"));
  t.strictSame(await readCatalog(address), before);

  await asOwner(address, "alter table core.migration drop column sha256");
  const noText = {
    code: 1,
    stdout: "",
    stderr: /^this database was made by other SQL .*001-schemas\.sql and \d+ more/,
  };
  fits(t, await run(address), noText, "a database that recorded no text");
});

t.test("on the embedded server of DATA_DIR, --dry-run leaves not even a role behind", async (t) => {
  const server = await startTemporaryServer("coupon-migrate-");
  t.teardown(() => server.stop());
  const env = { DATA_DIR: path.join(server.temporaryFolder, "data") };
  const before = await readCatalog(server.address);
  const { code, stdout, stderr } = await runProgram("migrate", { args: ["--dry-run"], env });
  t.equal(code, 0, stderr);
  t.match(stdout, /^would create the role coupon_admin\n/);
  t.match(stdout, `would apply ${listMigrations().at(-1)}\n`);
  t.strictSame(await readCatalog(server.address), before);
});

t.test("flags that do not go together are refused", async (t) => {
  for (const [args, message] of [
    [["--status", "--dry-run"], "--status and --dry-run exclude each other"],
    [["--json"], "--json needs --status"],
  ] as const)
    t.throws(() => command.read(args), { name: "UsageError", message });
});

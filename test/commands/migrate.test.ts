// The flags of `npm run migrate`: what they print, and that they change nothing.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import t from "tap";
import { type Address, formatUrl } from "../../src/common/database-address.ts";
import { openSession } from "../../src/database/connect.ts";
import { listCode, listMigrations } from "../../src/migration/db-files.ts";
import { asOwner } from "../support/as-owner.ts";
import { readCatalog } from "../support/catalog.ts";
import { change, copyCheckout } from "../support/copy.ts";
import { createDatabase, createEmptyDatabase } from "../support/database.ts";
import { fits } from "../support/fits.ts";
import { makeNextVersion } from "../support/next-version.ts";
import { exitCodeOf, spawnProgram, type Result } from "../support/program.ts";
import { startTemporaryServer } from "../support/temporary-server.ts";

interface Options {
  folder?: string;
  env?: Record<string, string>;
}

async function run(args: string[], { folder, env = {} }: Options): Promise<Result> {
  const program = spawnProgram("migrate", { args, env, ...(folder !== undefined && { folder }) });
  const [stdout, stderr] = await Promise.all([text(program.stdout!), text(program.stderr!)]);
  return { code: await exitCodeOf(program), stdout, stderr };
}

const reach = (address: Address): Record<string, string> => ({ DATABASE_URL: formatUrl(address) });

t.test("--dry-run prints what the next version would do, changes nothing, and a migrate still does it", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const next = makeNextVersion();
  t.teardown(() => next.remove());
  const [first, online, last] = next.migrations;
  const options = { folder: next.folder, env: reach(address) };

  const before = await readCatalog(address);
  const { code, stdout, stderr } = await run(["--dry-run"], options);
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

  const status = await run(["--status"], options);
  t.match(status.stdout, `pending  ${first}\npending  ${online}\npending  ${last}\ncode     another version\n`);
  fits(t, JSON.parse((await run(["--status", "--json"], options)).stdout), {
    code: "another version",
    is_up_to_date: false,
  });
  t.strictSame(await readCatalog(address), before);

  fits(t, await run([], options), { code: 0, stdout: /^migrated: 3 migrations/ });
});

t.test("a database made by other text of a migration is refused, and the sentence names the migration", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const folder = copyCheckout();
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const [name] = listMigrations().slice(-2);
  const file = path.join(folder, `db/migrations/${name}.sql`);
  const before = await readCatalog(address);
  // Only a comment differs, and the code is another version, so that a migrate has something to do.
  writeFileSync(file, `${readFileSync(file, "utf8")}-- changed\n`);
  change(folder, [{ file: "db/grants.sql", find: "-- The rights", replace: "-- All rights" }]);
  const options = { folder, env: reach(address) };
  const sentence = (others: string) =>
    `this database was made by other SQL than this checkout has in db/migrations/${others}: ` +
    "use the checkout that made it, or a new database\n";
  for (const args of [[], ["--dry-run"], ["--status"]])
    t.strictSame(await run(args, options), { code: 1, stdout: "", stderr: sentence(`${name}.sql`) }, args.join());

  writeFileSync(path.join(folder, "db/migrations/001-schemas.sql"), "");
  fits(t, await run(["--status"], options), { code: 1, stderr: sentence("001-schemas.sql and 1 more") });
  t.strictSame(await readCatalog(address), before);
  fits(t, await run([], { env: reach(address) }), { code: 0, stdout: "database is up to date\n" });
});

t.test("a database that recorded no text is refused too", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const owner = openSession(address, { name: "coupon test", role: "coupon_owner" });
  await owner.run("alter table core.migration drop column sha256");
  await owner.end();
  const refusal = {
    code: 1,
    stdout: "",
    stderr: /^this database was made by other SQL .*001-schemas\.sql and \d+ more/,
  };
  for (const args of [[], ["--status"]]) fits(t, await run(args, { env: reach(address) }), refusal);
});

t.test("an online migration is applied once its index is valid, and stays applied whatever fails later", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const next = makeNextVersion();
  t.teardown(next.remove);
  const [first, online, last] = next.migrations;
  // As after a build that failed.
  const superuser = openSession(address, { name: "coupon test" });
  await superuser.run(`
    create index redemption_by_channel on core.redemption (started_at);
    update pg_index set indisvalid = false where indexrelid = 'core.redemption_by_channel'::regclass`);
  const options = { folder: next.folder, env: reach(address) };
  const listNew = async () => {
    const text = "select name from core.migration where name = any ($1) order by position";
    return (await asOwner<{ name: string }>(address, text, [next.migrations])).map(({ name }) => name);
  };
  for (let times = 0; times < 2; times += 1) {
    fits(t, await run([], options), {
      code: 1,
      stderr: /^102-channel-index: the index core.redemption_by_channel is invalid, .*"drop index concurrently core.re/,
    });
    t.strictSame(await listNew(), [first], "what came before it stays");
  }
  await superuser.run("drop index concurrently core.redemption_by_channel");
  await superuser.end();
  await asOwner(address, "create function rules.forgotten() returns int language sql immutable return 1");
  await asOwner(address, "create view core.theirs as select rules.forgotten() as one");
  fits(t, await run([], options), { code: 1, stderr: /cannot drop what db\/code no longer has/ });
  t.strictSame(await listNew(), [first, online], "the index is there, so its migration is not tried again");
  await asOwner(address, "drop view core.theirs");
  fits(t, await run([], options), { code: 0, stdout: /^migrated: 1 migrations,/ });
  t.strictSame(await listNew(), [first, online, last]);
});

t.test("--dry-run reports the error that a migrate would meet, and changes nothing", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const owner = openSession(address, { name: "coupon test", role: "coupon_owner" });
  await owner.run(`
    create function rules.forgotten() returns int language sql immutable return 1;
    create view core.theirs as select rules.forgotten() as one;
    update core.code_version set sha256 = 'another'`);
  await owner.end();
  const before = await readCatalog(address);
  const { code, stderr } = await run(["--dry-run"], { env: reach(address) });
  t.equal(code, 1);
  t.match(stderr, /cannot drop what db\/code no longer has.*core\.theirs/s);
  t.strictSame(await readCatalog(address), before);
});

t.test("on the embedded server of DATA_DIR, --dry-run leaves not even a role behind", async (t) => {
  const server = await startTemporaryServer("coupon-migrate-");
  t.teardown(() => server.stop());
  const env = { DATA_DIR: path.join(server.temporaryFolder, "data") };
  const before = await readCatalog(server.address);
  const { code, stdout, stderr } = await run(["--dry-run"], { env });
  t.equal(code, 0, stderr);
  t.match(stdout, /^would create the role coupon_admin\n/);
  t.match(stdout, `would apply ${listMigrations().at(-1)}\n`);
  t.strictSame(await readCatalog(server.address), before);
});

t.test("--help prints the usage, without a database", async (t) => {
  for (const flag of ["--help", "-h"]) {
    fits(t, await run([flag], {}), { code: 0, stdout: /^usage: coupon migrate/, stderr: "" });
  }
});

t.test("a command line that is not understood ends with exit code 2 and changes nothing", async (t) => {
  const { address, drop } = await createEmptyDatabase();
  t.teardown(drop);
  const before = await readCatalog(address);
  for (const args of [["--dryrun"], ["status"], ["--status", "--dry-run"], ["--status=yes"], ["-n"]]) {
    fits(t, await run(args, { env: reach(address) }), { code: 2, stdout: "", stderr: /\nusage: coupon migrate/ });
  }
  t.strictSame(await readCatalog(address), before);
});

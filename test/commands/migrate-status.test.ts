// `npm run migrate -- --status`: what it prints of each kind of database.
import t from "tap";
import type { Address } from "../../src/common/database-address.ts";
import { listMigrations } from "../../src/migration/db-files.ts";
import { asOwner } from "../support/as-owner.ts";
import { readCatalog } from "../support/catalog.ts";
import { createDatabase, createEmptyDatabase } from "../support/database.ts";
import { fits } from "../support/fits.ts";
import { runProgram } from "../support/program.ts";

const run = (address: Address, ...args: string[]) => runProgram({ address, masterKeyText: "" }, "migrate", args);
const isoTime = "\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z";

t.test("--status --json is a document of the same facts", async (t) => {
  const readDocument = async (address: Address): Promise<unknown> =>
    JSON.parse((await run(address, "--status", "--json")).stdout);
  const empty = await createEmptyDatabase();
  t.teardown(empty.drop);
  t.strictSame(await readDocument(empty.address), {
    migrations: listMigrations().map((name) => ({ name, status: "pending", applied_at: null })),
    code: "not loaded",
    is_up_to_date: false,
  });
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  await asOwner(address, "insert into core.migration (name, sha256) values ('999-future', '')");
  const applied = await asOwner<{ name: string; at: Date }>(
    address,
    "select name, applied_at as at from core.migration order by position",
  );
  t.strictSame(await readDocument(address), {
    migrations: applied.map(({ name, at }) => ({
      name,
      status: name === "999-future" ? "unknown" : "applied",
      applied_at: at.toISOString(),
    })),
    code: "current",
    is_up_to_date: false,
  });
  const refusal = { code: 2, stdout: "", stderr: /^--json belongs to --status\n/ };
  fits(t, await run(address, "--json"), refusal);
});

t.test("--status lists every migration as pending on an empty database, and creates nothing", async (t) => {
  const { address, drop } = await createEmptyDatabase();
  t.teardown(drop);
  const before = await readCatalog(address);
  const { code, stdout, stderr } = await run(address, "--status");
  t.equal(code, 0, stderr);
  t.equal(
    stdout,
    [
      ...listMigrations().map((name) => `pending  ${name}`),
      "code     not loaded",
      "npm run migrate brings the database up to date\n",
    ].join("\n"),
  );
  t.strictSame(await readCatalog(address), before);
});

t.test(
  "--status of a migrated database: applied, current, up to date, until a release changes a function",
  async (t) => {
    const { address, drop } = await createDatabase();
    t.teardown(drop);
    const { code, stdout } = await run(address, "--status");
    t.equal(code, 0);
    const lines = stdout.trimEnd().split("\n");
    t.strictSame(lines.slice(-2), ["code     current", "database is up to date"]);
    t.equal(lines.length, listMigrations().length + 2);
    for (const [index, name] of listMigrations().entries()) {
      t.match(lines[index], new RegExp(`^applied  ${name}  ${isoTime}$`));
    }
    const json = async () => JSON.parse((await run(address, "--status", "--json")).stdout);
    fits(t, await json(), { code: "current", is_up_to_date: true });

    await asOwner(address, "update core.code_version set sha256 = 'another' where is_current");
    const lastLines = /\ncode {5}another version\nnpm run migrate brings the database up to date\n$/;
    fits(t, (await run(address, "--status")).stdout, lastLines);
    fits(t, await json(), { code: "another version", is_up_to_date: false });
  },
);

t.test("--status names the migrations of a database that is newer than the checkout", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  await asOwner(address, "insert into core.migration (name, sha256) values ('999-future', '')");
  const { code, stdout } = await run(address, "--status");
  t.equal(code, 0);
  t.match(stdout, /the database is newer than this checkout, which does not know its migration 999-future\n$/);
});

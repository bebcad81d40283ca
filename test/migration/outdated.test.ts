// What a migrate and a dry run of an outdated database say and do, also beside a session that changes the same rights.
import t, { type Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { listCode } from "../../src/migration/db-files.ts";
import { dryRun, migrate } from "../../src/migration/migrate.ts";
import type { Address } from "../../src/common/database-address.ts";
import { asOwner } from "../support/as-owner.ts";
import { readCatalog } from "../support/catalog.ts";
import { addressOf, asAdmin, createDatabase, readRun } from "../support/database.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

// A database whose code is not that of this checkout.
async function makeOutdated(t: Test): Promise<Address> {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  await asOwner(address, "update core.code_version set sha256 = 'another' where is_current");
  return address;
}

const count = listCode().length;
const lastStep = `loading functions and views: ${count} of ${count}`;

t.test("a dry run says what a migrate would do, and changes nothing", async (t) => {
  const address = await makeOutdated(t);
  await asOwner(address, "create function rules.forgotten() returns int language sql immutable return 1");
  await asOwner(address, "create view report.forgotten as select rules.forgotten() as one");
  await asOwner(address, "create function jobs.forgotten(p_a text) returns int language sql immutable return 1");
  const before = await readCatalog(address);
  const [lines, steps] = [[] as string[], [] as string[]];
  t.equal(
    await dryRun(
      address,
      (line) => lines.push(line),
      (step) => steps.push(step),
    ),
    true,
  );
  t.strictSame(lines, [
    `would load ${count} functions and views`,
    "would drop report.forgotten",
    "would drop rules.forgotten()",
    "would keep jobs.forgotten(p_a text) for one more version",
    "dry run: nothing was changed",
  ]);
  t.strictSame([steps.length, steps.at(-1)], [count, lastStep]);
  t.strictSame(await readCatalog(address), before);

  lines.length = 0;
  steps.length = 0;
  t.equal(
    await migrate(
      address,
      (line) => lines.push(line),
      (step) => steps.push(step),
    ),
    true,
  );
  t.strictSame(lines, [`no new migration, ${count} functions and views loaded`]);
  t.strictSame(steps.slice(-2), [lastStep, "waiting for calls of functions that are dropped"]);
  for (const act of [migrate, dryRun])
    t.equal(
      await act(
        address,
        (line) => lines.push(line),
        () => {},
      ),
      false,
      "it is up to date",
    );
  t.equal(lines.length, 1);
});

t.test("a session that changes the rights on the database meanwhile makes nothing fail", async (t) => {
  for (const act of [migrate, dryRun]) {
    const address = await makeOutdated(t);
    const other = openSession(address, { name: "coupon test" });
    t.teardown(() => other.end());
    const name = address.database!;
    await other.run(`begin; grant temporary on database "${name}" to coupon_report`);
    const running = act(
      address,
      () => {},
      () => {},
    );
    const isBlocked = "select from pg_stat_activity where datname = $1 and cardinality(pg_blocking_pids(pid)) > 0";
    // Not by `other`: within a transaction, the list of sessions does not change.
    const countBlocked = () => asAdmin(address, async (admin) => (await admin.rows(isBlocked, [name])).length);
    await waitUntil("the migrate to wait", async () => (await countBlocked()) > 0);
    await other.run("commit");
    t.equal(await waitFor("the migrate", running, { withinMs: 60_000 }), true);
    const old = "select from core.code_version where sha256 = 'another' and is_current";
    t.equal((await asOwner(address, old)).length, act === migrate ? 0 : 1);
  }
});

t.test("a database with another encoding is refused, and stays empty", async (t) => {
  const { server, prefix } = readRun();
  const name = `${prefix}ascii`;
  const options = "template template0 encoding 'SQL_ASCII' locale 'C'";
  await asAdmin(server, (admin) => admin.rows(`create database "${name}" ${options}`));
  t.teardown(() => asAdmin(server, (admin) => admin.rows(`drop database "${name}"`)));
  const address = addressOf(server, name);
  const before = await readCatalog(address);
  await t.rejects(migrate(address), { message: "the database must have the encoding UTF8, not SQL_ASCII" });
  t.strictSame(await readCatalog(address), before);
});

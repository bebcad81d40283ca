// Commands that are given the URL of a router. Skipped where no PostgreSQL has PL/Proxy.
import { writeFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { addCell, withRouter } from "../../src/commands/router-database.ts";
import type { Address } from "../../src/config/database-address.ts";
import { createDatabase } from "../support/database.ts";
import { fits } from "../support/fits.ts";
import { findFreePort } from "../support/listen.ts";
import { environmentOf, runProgram } from "../support/program.ts";
import { startProxy } from "../support/proxy.ts";
import { addCells, becomeCell } from "../support/route.ts";
import { findRouterBinaries, howToInstall } from "../support/router.ts";
import { readState } from "../support/state.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";
import { credential, merchant, party, template } from "../support/tenants.ts";
import { startTwoCells, type TwoCells } from "../support/two-cells.ts";

const skip = findRouterBinaries() === undefined && howToInstall;

let cells: TwoCells;
let proxy: Awaited<ReturnType<typeof startProxy>>;
if (!skip)
  t.before(async () => {
    cells = await startTwoCells(t);
    const [one, two] = cells.worlds;
    proxy = await startProxy(two.address);
    t.teardown(() => proxy.stop());
    await addCells(cells.router, [one.address, { ...two.address, host: "127.0.0.1", port: proxy.port }]);
  });

/** A program with the URL of the router. The login is that of the cells. */
async function run(name: string, ...args: string[]) {
  const [{ address, masterKeyText }] = cells.worlds;
  const { user, password } = { user: "postgres", ...address };
  const router = { ...cells.router, user, ...(password !== undefined && { password }) };
  return runProgram(name, { args, env: environmentOf({ address: router, masterKeyText }) });
}

async function breakSecond(act: () => Promise<unknown>): Promise<void> {
  proxy.set({ cutsConnect: () => true });
  proxy.cutAll();
  await act();
  proxy.set({});
}

t.test("A command works in the cell of the tenant, batch or access key that it names", { skip }, async (t) => {
  const [one, two] = cells.worlds;
  for (const [world, side, tenant, key] of [
    [one, one.a, "ten_a", "ak_a_second"],
    [two, two.b, "ten_b", "ak_other"],
  ] as const) {
    const { id, coupons } = await world.makeBatch(side.maker, side === one.a ? "tpl_fixed" : "tpl_b", 2);
    const codes = await run("codes", id);
    t.equal(codes.stderr, "");
    const lines = coupons.map((coupon) => `${coupon.id},${coupon.code}`).sort();
    t.strictSame(codes.stdout.trim().split(/\r?\n/).slice(1).sort(), lines);

    const listed = await run("credentials", "list", tenant, "--json");
    const stored = await world.owner.rows<{ access_key: string }>(
      "select access_key from report.credential where tenant = $1 order by 1",
      [tenant],
    );
    const accessKeys = (JSON.parse(listed.stdout) as { access_key: string }[]).map((each) => each.access_key);
    t.strictSame(accessKeys.sort(), stored.map((each) => each.access_key).sort());

    fits(t, await run("credentials", "revoke", key, "--reason", "stolen"), { code: 0, stdout: /^revoked at/ });
    const rows = await world.owner.rows(
      "select revoked_at is not null as is_revoked from core.credential where access_key = $1",
      [key],
    );
    fits(t, rows, [{ is_revoked: true }]);
    fits(t, await run("webhooks", "status", tenant), { code: 0, stdout: "none\n" });
    fits(t, await run("statements", "list", tenant, "--json"), { code: 0, stdout: "[]\n" });
  }
});

t.test("An ID of no cell is unknown, unless a cell could not be asked", { skip }, async (t) => {
  fits(t, await run("codes", "bat_none"), { code: 1, stdout: "", stderr: /no cell has bat_none/ });
  await breakSecond(async () => {
    fits(t, await run("credentials", "list", "ten_none"), {
      code: 1,
      stderr: /cell 2 cannot be asked whether it has ten_none: /,
    });
    fits(t, await run("credentials", "list", "ten_a", "--json"), { code: 0, stdout: /"ten_a"/ });
  });
});

t.test("A cell is added if it is that cell, and removed if it has no tenant", { skip }, async (t) => {
  const { router, worlds } = cells;
  const [{ address: one, owner }, { address: two }] = worlds;
  const ask = <T>(text: string) => withRouter(router, (database) => database.rows<T>(text));
  const list = async () => (await run("src/coupon.ts", "cells", "list", "--json")).stdout;
  const before = await list();
  t.strictSame(Object.keys(JSON.parse(before)[0]), ["cell", "address", "migration", "problem"]);
  const add = (number: number, address: Address) => addCell(router, number, { user: "postgres", ...address });
  const closed = { host: "127.0.0.1", port: await findFreePort() };
  await t.rejects(add(2, one), { code: "CP409", message: /^cell 2 is not added: its database is cell 1/ });
  await t.rejects(add(2, { ...two, ...closed }), { message: /Connection refused/ });
  t.equal(await list(), before, "the cell is reached as before");
  await t.rejects(ask("select router.remove_cell(2, false)"), { code: "CP409", message: "cell 2 has tenants: 1" });

  await add(2, { ...two, ...closed, others: [{ host: "127.0.0.1", port: proxy.port }] });
  fits(t, await ask("select cell from gate.read_cell_version(2)"), [{ cell: 2 }], "the server that takes writes");
  t.match(await list(), `127.0.0.1:${closed.port}/${two.database},127.0.0.1:${proxy.port}/${two.database}`);
  fits(t, await run("credentials", "list", "ten_b", "--json"), { code: 0, stdout: /"ten_b"/ });

  // Of a cell 3 that is gone, and of cell 2 before a restore.
  const psql = await worlds[0].openPsql();
  await psql.run("set session_replication_role = replica");
  for (const id of [2_000_001, 1_000_001])
    await psql.rows(
      `insert into core.tenant (tenant_id, external_id, name, variant, amount_unit) overriding system value
       values (${id}, 'ten_${id}', 'x', 'A', 'major')`,
    );
  const third = await createDatabase();
  t.teardown(third.drop);
  await becomeCell(third.address, 3);
  await t.rejects(add(3, third.address), { code: "CP409", message: /number 2000001 lives in cell 1$/ });
  fits(t, await run("src/coupon.ts", "router", "status"), {
    code: 1,
    stdout: /^cell 2 +tenant number 1000001 lives in cell 1 too$/m,
  });
  await psql.run("delete from core.tenant where tenant_id > 1000");
  await add(3, third.address);
  fits(t, await run("src/coupon.ts", "router", "status"), { code: 0, stdout: /^cell 3 +serves$/m });
  fits(t, await run("src/coupon.ts", "cells", "remove", "3"), { code: 0, stdout: "cell 3 is removed\n" });
  await addCells(router, [one, { ...two, host: "127.0.0.1", port: proxy.port }]);
  t.equal(await list(), before);
  t.equal((await owner.rows("select from core.tenant")).length, 1);
});

t.test("What works in one cell ends at once, and so does a command that names no tenant", { skip }, async (t) => {
  const isRouter =
    /DATABASE_URL is a router \(cells: 1, 2\): give the URL of one; `coupon cells list` says where they are/;
  for (const [name, ...args] of [
    ["work"],
    ["console"],
    ["migrate"],
    ["migrate", "--status"],
    ["statements", "verify"],
    ["start"],
  ])
    fits(t, await run(name!, ...args), { code: 1, stdout: "", stderr: isRouter });
  for (const [name, command] of [
    ["credentials", "list"],
    ["webhooks", "status"],
    ["statements", "list"],
  ] as const)
    fits(t, await run(name, command), { code: 1, stderr: /name a tenant, or give the URL of one cell/ });
});

const acme = (id: string, accessKey: string) => ({
  id,
  name: "new",
  variant: "A",
  parties: [party("pty_a")],
  merchants: [merchant("mch_1", "pty_a")],
  templates: [template("tpl_1", "pty_a")],
  credentials: [credential(accessKey)],
});

async function apply(t: Test, tenants: object[], ...args: string[]) {
  const file = path.join(useTemporaryFolder(t, "coupon-apply-"), "file.json");
  writeFileSync(file, JSON.stringify({ tenants }));
  return run("apply", file, ...args);
}
const find = async (id: string) =>
  Promise.all(
    cells.worlds.map(
      async ({ owner }) =>
        (await owner.rows<{ id: string }>("select id from admin.find_local(array[$1]) id", [id])).length,
    ),
  );

t.test("apply refuses what lives in another cell before anything is written", { skip }, async (t) => {
  const [one, two] = cells.worlds;
  const readBoth = async () => [await readState(one.owner), await readState(two.owner)];
  const before = await readBoth();
  const [onlyA, onlyB] = [
    { ...acme("ten_a", "ak_a9"), parties: [] },
    { ...acme("ten_b", "ak_b9"), variant: "B", credentials: [credential("ak_b9", "pty_a")] },
  ];
  for (const [tenants, args, message] of [
    [[onlyA, onlyB], [], /^tenants\.1\.id: lives in cell 2, and this file is applied to cell 1$/m],
    [[acme("ten_new", "ak_maker")], ["--cell", "1"], /^tenants\.0\.credentials\.0\.access_key: lives in cell 2, and/m],
    [
      [onlyB, acme("ten_new", "ak_new")],
      ["--cell", "1"],
      /^tenants\.0\.id: lives in cell 2, and this file is applied to cell 1$/m,
    ],
    [[acme("ten_new", "ak_new")], [], /say where they are to live, with --cell N; the cells are 1, 2$/m],
    [[acme("ten_new", "ak_new")], ["--cell", "3"], /there is no cell 3: the cells are 1, 2$/m],
  ] as const)
    fits(t, await apply(t, [...tenants], ...args), { code: 1, stdout: "", stderr: message });
  await breakSecond(async () =>
    fits(t, await apply(t, [acme("ten_new", "ak_new")], "--cell", "1"), {
      code: 1,
      stderr: /cell 2 cannot be asked whether it has ten_new: /,
    }),
  );
  t.strictSame(await readBoth(), before, "nothing changes");
});

t.test("apply makes new tenants in the cell of the others of the file, or in that of --cell", { skip }, async (t) => {
  const first = await apply(t, [acme("ten_new", "ak_new")], "--cell", "2");
  fits(t, first, { code: 0, stdout: /"changed": [1-9]/ });
  t.strictSame(
    [await find("ten_new"), await find("ak_new")],
    [
      [0, 1],
      [0, 1],
    ],
  );
  fits(t, await apply(t, [acme("ten_new", "ak_new"), acme("ten_new2", "ak_new2")]), { code: 0 });
  t.strictSame(await find("ten_new2"), [0, 1]);
  fits(
    t,
    await apply(t, [acme("ten_new", "ak_new")], "--cell", "1"),
    { code: 0, stdout: /"changed": 0/ },
    "it is not new",
  );

  // Not their cell, but another one is down.
  await breakSecond(async () => {
    fits(t, await apply(t, [{ ...acme("ten_a", "ak_a"), parties: [], merchants: [], templates: [] }]), { code: 0 });
  });

  const both = await Promise.all(["1", "2"].map((cell) => apply(t, [acme("ten_once", "ak_once")], "--cell", cell)));
  t.strictSame(
    both.map(({ code }) => code),
    [0, 0],
    "at once: it is new for one of them",
  );
  t.equal(
    (await find("ten_once")).reduce((sum, count) => sum + count),
    1,
  );

  const { address, masterKeyText } = cells.worlds[0];
  const file = path.join(useTemporaryFolder(t, "coupon-apply-"), "file.json");
  writeFileSync(file, JSON.stringify({ tenants: [acme("ten_direct", "ak_direct")] }));
  const direct = await runProgram("apply", {
    args: [file, "--cell", "1"],
    env: environmentOf({ address, masterKeyText }),
  });
  fits(t, direct, { code: 1, stderr: /--cell is for a router/ });
});

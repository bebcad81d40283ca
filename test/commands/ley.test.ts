// `npx ley` in this project: the real program, as npx starts it.
import { spawn } from "node:child_process";
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import t from "tap";
import { type Address, formatUrl } from "../../src/common/database-address.ts";
import { listMigrations } from "../../src/migration/db-files.ts";
import { readCatalog } from "../support/catalog.ts";
import { copyCheckout, root } from "../support/copy.ts";
import { createDatabase, createEmptyDatabase } from "../support/database.ts";
import { fits } from "../support/fits.ts";
import { makeNextVersion } from "../support/next-version.ts";
import { exitCodeOf, spawnProgram } from "../support/program.ts";
import { startTemporaryServer } from "../support/temporary-server.ts";

interface Options {
  folder?: string;
  flags?: string[];
  env?: Record<string, string>;
}

/** `output` is what a terminal shows, without colors. */
async function ley(args: string[], { folder = root, flags = [], env = {} }: Options = {}) {
  const program = path.join(root, "node_modules/ley/bin.js");
  const child = spawn(process.execPath, [...flags, program, ...args], {
    cwd: folder,
    env: { PATH: process.env["PATH"], NO_COLOR: "1", ...env },
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await exitCodeOf(child), output: stdout + stderr };
}

const reach = (address: Address): Record<string, string> => ({ DATABASE_URL: formatUrl(address) });
const awaiting = (names: string[]): RegExp => {
  const files = names.map((name) => `\n    ↑ ${name}\\.ts`).join("");
  return new RegExp(`^\\[ley\\] Awaiting ${names.length} files?:${files}\n\n$`, "m");
};
const allCaughtUp = /^\[ley\] All caught up! 🎉\n\n$/m;

t.test("ley status lists what is pending, and creates nothing", async (t) => {
  const { address, drop } = await createEmptyDatabase();
  t.teardown(drop);
  const before = await readCatalog(address);
  fits(t, await ley(["status"], { env: reach(address) }), { code: 0, output: awaiting(listMigrations()) });
  t.strictSame(await readCatalog(address), before);
});

t.test(
  "ley status finds nothing to do on a migrated database, and only the new ones of the next version",
  async (t) => {
    const { address, drop } = await createDatabase();
    t.teardown(drop);
    const next = makeNextVersion();
    t.teardown(() => next.remove());
    const before = await readCatalog(address);
    fits(t, await ley(["status"], { env: reach(address) }), { code: 0, output: allCaughtUp });
    fits(t, await ley(["status"], { env: reach(address), folder: path.join(root, "db") }), {
      output: allCaughtUp,
    });
    fits(t, await ley(["status"], { env: reach(address), folder: next.folder }), { output: awaiting(next.migrations) });
    t.strictSame(await readCatalog(address), before, "no table public.migrations either");

    const migrated = spawnProgram("migrate", { folder: next.folder, env: reach(address) });
    t.equal(await exitCodeOf(migrated), 0);
    fits(t, await ley(["status"], { env: reach(address), folder: next.folder }), { output: allCaughtUp });
    fits(t, await ley(["status"], { env: reach(address) }), { code: 1, output: /Error: the database is newer/ });
  },
);

t.test("ley status refuses a database made by other text of a migration", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const folder = copyCheckout();
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const last = listMigrations().at(-1)!;
  writeFileSync(path.join(folder, `db/migrations/${last}.sql`), "-- changed\n");
  fits(t, await ley(["status"], { env: reach(address), folder }), {
    code: 1,
    output: new RegExp(
      `Error: this database was made by other SQL than this checkout has in db/migrations/${last}\\.sql`,
    ),
  });
});

t.test("ley status reads the embedded server of DATA_DIR, which may be relative", async (t) => {
  const server = await startTemporaryServer("coupon-ley-");
  t.teardown(() => server.stop());
  const env = { DATA_DIR: path.relative(root, path.join(server.temporaryFolder, "data")) };
  fits(t, await ley(["status"], { env }), { code: 0, output: awaiting(listMigrations()) });
  fits(t, await ley(["status"], { env, folder: path.join(root, "db") }), { output: awaiting(listMigrations()) });
});

t.test("ley status without a database says so in one line", async (t) => {
  const folder = copyCheckout();
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const { code, output } = await ley(["status"], { folder });
  t.equal(code, 1);
  t.match(output, /An error occurred:\s+Error: no DATABASE_URL is set and no embedded server.*\n\n$/);
});

t.test("ley up and ley down say what to use, and change nothing", async (t) => {
  const { address, drop } = await createEmptyDatabase();
  t.teardown(drop);
  const before = await readCatalog(address);
  for (const args of [["up"], ["up", "--single"], ["down"], ["down", "-a"], ["-D", "postgres", "up"]]) {
    fits(t, await ley(args, { env: reach(address) }), { code: 1, output: /`npm run migrate`/ }, args.join(" "));
  }
  t.strictSame(await readCatalog(address), before);
});

t.test("ley status refuses options that would lead it elsewhere", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const before = await readCatalog(address);
  for (const args of [
    ["-D", "postgres"],
    ["-C", "db"],
    ["-C", root],
    ["--dir", "db/migrations"],
  ]) {
    const { code, output } = await ley(["status", ...args], { env: reach(address) });
    t.equal(code, 1);
    t.match(output, /leave out --(driver|cwd|dir): ley\.config\.js sets what ley needs here\n$/);
  }
  t.strictSame(await readCatalog(address), before);
});

t.test("ley new creates the next migration in our form, and npm run migrate applies it", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const folder = copyCheckout();
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const migrations = path.join(folder, "db/migrations");
  const last = listMigrations().at(-1)!;
  const number = String(Number.parseInt(last, 10) + 1).padStart(3, "0");
  const name = `${number}-coupon-notes`;
  const before = readdirSync(migrations);

  const { code, output } = await ley(["new", "coupon notes"], { folder });
  t.equal(code, 0, output);
  t.match(output, `created db/migrations/${name}.sql`);
  t.match(output, "`npm run migrate`");
  const created = readdirSync(migrations).filter((file) => !before.includes(file));
  t.strictSame(created.sort(), [`${name}.sql`, `${name}.ts`]);
  t.equal(readFileSync(path.join(migrations, `${name}.sql`), "utf8"), "");
  t.equal(
    readFileSync(path.join(migrations, `${name}.ts`), "utf8"),
    readFileSync(path.join(migrations, `${last}.ts`), "utf8"),
  );
  fits(t, await ley(["status"], { env: reach(address), folder }), { output: awaiting([name]) });
  t.equal(await exitCodeOf(spawnProgram("migrate", { folder, env: reach(address) })), 0);
  fits(t, await ley(["status"], { env: reach(address), folder }), { output: allCaughtUp });
});

t.test("ley new refuses names and flags that do not fit our form, and creates nothing", async (t) => {
  const folder = copyCheckout();
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const migrations = path.join(folder, "db/migrations");
  const before = readdirSync(migrations);
  for (const args of [["Coupon_Notes"], ["notes.js"], ["../notes"], ["notes", "--timestamp"], ["notes", "--esm"]]) {
    const { code, output } = await ley(["new", ...args], { folder });
    t.equal(code, 1);
    t.match(output, /\n(usage: npx ley new SUBJECT|leave out --)/);
  }
  t.strictSame(readdirSync(migrations), before);
});

t.test("a Node that cannot run TypeScript gets a message of one sentence", async (t) => {
  const old = 'Object.defineProperty(process,"versions",{value:{node:"20.0.0"}})';
  const flags = ["--import", `data:text/javascript,${encodeURIComponent(old)}`];
  fits(t, await ley(["status"], { flags }), {
    code: 1,
    output: /Node 24 or newer is needed.*`npm run migrate -- --status`/,
  });
});

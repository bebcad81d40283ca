// `npx ley` in this project: the real program, as npx starts it, and how its command line is read.
import { spawn } from "node:child_process";
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { readCommand } from "../../src/commands/ley.ts";
import { type Address, formatUrl } from "../../src/config/database-address.ts";
import { listMigrations } from "../../src/migration/db-files.ts";
import { readCatalog } from "../support/catalog.ts";
import { copyCheckout, root } from "../support/copy.ts";
import { createDatabase, createEmptyDatabase } from "../support/database.ts";
import { fits } from "../support/fits.ts";
import { resultOf, runProgram } from "../support/program.ts";

type Options = { folder?: string; flags?: string[]; env?: Record<string, string> };

const empty = await createEmptyDatabase();
t.teardown(empty.drop);
const migrated = await createDatabase();
t.teardown(migrated.drop);
const copy = copyCheckout();
t.teardown(() => rmSync(copy, { recursive: true, force: true }));

/** `output` is what a terminal shows, without colors. */
async function ley(args: string[], { folder = root, flags = [], env = {} }: Options = {}) {
  const program = path.join(root, "node_modules/ley/bin.js");
  const child = spawn(process.execPath, [...flags, program, ...args], {
    cwd: folder,
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"], NO_COLOR: "1", ...env },
  });
  const { code, stdout, stderr } = await resultOf(child);
  return { code, output: stdout + stderr };
}

const reach = ({ address }: { address: Address }): Record<string, string> => ({ DATABASE_URL: formatUrl(address) });
const awaiting = (names: string[]) => {
  const files = names.map((name) => `\n    ↑ ${name}\\.ts`).join("");
  return { code: 0, output: new RegExp(`^\\[ley\\] Awaiting ${names.length} files?:${files}\n\n$`, "m") };
};
const allCaughtUp = { code: 0, output: /^\[ley\] All caught up! 🎉\n\n$/m };
const isUnusable = { code: 1, output: /leave out --(driver|cwd): ley\.config\.js sets what ley needs here\n$/ };

t.test("ley status lists what is pending, and neither status nor a refused command changes anything", async (t) => {
  const before = [await readCatalog(empty.address), await readCatalog(migrated.address)];
  fits(t, await ley(["status"], { env: reach(empty) }), awaiting(listMigrations()));
  fits(t, await ley(["status"], { env: reach(migrated) }), allCaughtUp);
  fits(t, await ley(["up", "--single"], { env: reach(empty) }), { code: 1, output: /`npm run migrate`/ });
  for (const args of [
    ["-D", "postgres"],
    ["-C", root],
  ])
    fits(t, await ley(["status", ...args], { env: reach(empty) }), isUnusable);
  const after = [await readCatalog(empty.address), await readCatalog(migrated.address)];
  t.strictSame(after, before, "no table public.migrations either");
});

t.test("ley reads DATA_DIR relative to the project, and says in one line that no database runs there", async (t) => {
  const { code, output } = await ley(["status"], { folder: path.join(root, "db"), env: { DATA_DIR: "no/data" } });
  const place = path.join(root, "no/data");
  t.equal(code, 1);
  t.match(
    output,
    new RegExp(`An error occurred:\\s+Error: no DATABASE_URL is set and no embedded server runs in ${place}: .*\n\n$`),
  );
});

t.test("ley new creates the next migration in our form, and npm run migrate applies it", async (t) => {
  const migrations = path.join(copy, "db/migrations");
  const last = listMigrations().at(-1)!;
  const number = String(Number.parseInt(last, 10) + 1).padStart(3, "0");
  const name = `${number}-coupon-notes`;
  const before = readdirSync(migrations);
  for (const subject of ["Coupon_Notes", "../notes"]) {
    const { code, output } = await ley(["new", subject], { folder: copy });
    t.equal(code, 1);
    t.match(output, "\nusage: npx ley new SUBJECT");
  }
  t.strictSame(readdirSync(migrations), before);

  const { code, output } = await ley(["new", "coupon notes"], { folder: copy });
  t.equal(code, 0, output);
  t.match(output, `created db/migrations/${name}.sql`);
  t.match(output, "`npm run migrate`");
  const created = readdirSync(migrations).filter((file) => !before.includes(file));
  t.strictSame(created.sort(), [`${name}.sql`, `${name}.ts`]);
  const read = (file: string) => readFileSync(path.join(migrations, file), "utf8");
  t.strictSame([read(`${name}.sql`), read(`${name}.ts`)], ["", read(`${last}.ts`)]);

  const options = { env: reach(migrated), folder: copy };
  fits(t, await ley(["status"], options), awaiting([name]));
  fits(t, await runProgram("migrate", options), { code: 0 });
  fits(t, await ley(["status"], options), allCaughtUp);
  fits(t, await ley(["status"], { env: reach(migrated) }), { code: 1, output: /Error: the database is newer/ });
  writeFileSync(path.join(migrations, `${last}.sql`), "-- changed\n");
  const otherText = `Error: this database was made by other SQL than this checkout has in db/migrations/${last}\\.sql`;
  fits(t, await ley(["status"], options), { code: 1, output: new RegExp(otherText) });
});

t.test("a Node that cannot run TypeScript gets a message of one sentence", async (t) => {
  const old = 'Object.defineProperty(process,"versions",{value:{node:"20.0.0"}})';
  const flags = ["--import", `data:text/javascript,${encodeURIComponent(old)}`];
  const output = /Node 24 or newer is needed.*`npm run migrate -- --status`/;
  fits(t, await ley(["status"], { flags }), { code: 1, output });
});

t.test("an option's value is never taken for the command; only --config is an option here", async (t) => {
  t.strictSame(readCommand([]), { command: "", subject: "" });
  t.strictSame(readCommand(["status"]), { command: "status", subject: "" });
  t.strictSame(readCommand(["new", "coupon", "notes"]), { command: "new", subject: "coupon-notes" });
  const refusalOf = (name: string) => ({ message: `leave out --${name}: ley.config.js sets what ley needs here` });
  const up = { message: /^ley up is not used here: `npm run migrate` / };
  for (const option of "--cwd --dir --config --driver --require --length -C -d -c -D -r -l".split(" "))
    t.throws(() => readCommand([option, "value", "up"]), up, option);
  for (const args of [["--cwd=value"], ["-C", "value"], ["-Cvalue"]])
    t.throws(() => readCommand(["status", ...args]), refusalOf("cwd"), args.join(" "));
  for (const name of ["cwd", "dir", "driver", "require", "length"])
    t.throws(() => readCommand(["status", `--${name}`, "value"]), refusalOf(name));
  t.throws(() => readCommand(["down"]), { message: /^migrations only go forward: / });
  t.strictSame(readCommand(["new", "--config", "value", "x"]), { command: "new", subject: "x" });
  for (const name of ["esm", "timestamp"]) t.throws(() => readCommand(["new", "x", `--${name}`]), refusalOf(name));
});

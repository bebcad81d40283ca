// The tables in the documents list what the source has: settings, limits, views, files.
import { existsSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { connect } from "../../src/database/connect.ts";
import { sessionSettings } from "../../src/database/session-settings.ts";
import { createDatabase } from "../support/database.ts";
import { root } from "../support/copy.ts";
import { read } from "./markdown.ts";

const between = (text: string, name: string): string =>
  new RegExp(`<!-- ${name}:begin -->([^]*)<!-- ${name}:end -->`).exec(text)?.[1] ?? "";

// The names in backticks in the first cell of each row.
const firstCells = (table: string): string[] =>
  [...table.matchAll(/^\| ((?:`[^`]+`(?:, )?)+) \|/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
  );

t.test("docs/operate.md lists every setting that src/common/config.ts reads, and no other", async (t) => {
  const source = read("src/common/config.ts");
  const settings = [...source.matchAll(/\b(?:(?:read|count)\(|env\[)"([A-Z_]+)"/g)].map(([, name = ""]) => name);
  t.ok(settings.length > 15);
  t.strictSame(firstCells(between(read("docs/operate.md"), "settings")).sort(), [...new Set(settings)].sort());
});

t.test("docs/operate.md states the default and the limits of each numeric setting", async (t) => {
  const source = read("src/common/config.ts").replace(/(?<=\d)_(?=\d)/g, "");
  const table = between(read("docs/operate.md"), "settings");
  const settings = [...source.matchAll(/\bcount\("([A-Z_]+)", ([^,]+), (\d+), (\d+)\)/g)];
  t.equal(settings.length, 9);
  for (const [, name = "", usual = "", least = "", most = ""] of settings) {
    const row = table.split("\n").find((line) => line.startsWith("|") && line.split(" | ")[0]!.includes(`\`${name}\``));
    const [names = "", defaults = "", limits = ""] = row?.split(" | ") ?? [];
    const place = firstCells(`${names} |`).indexOf(name);
    t.equal(limits.split(", ")[place], `${least} to ${most}`, name);
    // The others have no number: no metrics, and the burst of one second.
    if (/^\d+$/.test(usual) && name !== "METRICS_PORT") t.equal(defaults.split(", ")[place], usual, name);
  }
});

t.test("docs/limits.md has each limit as the source sets it", async (t) => {
  const numbersOf = (text: string) =>
    [...text.matchAll(/\d+(?:[,_]\d{3})*(?:\.\d+)?(?:e\d+)?/g)].map(([number]) => Number(number.replace(/[,_]/g, "")));
  const rows = between(read("docs/limits.md"), "limits").trim().split("\n").slice(2);
  t.ok(rows.length > 50);
  for (const row of rows) {
    const [name = "", value = "", places = ""] = row.slice(2).split(" | ");
    const found: number[] = [];
    for (const [, snippets = "", file = ""] of places.matchAll(/(`.+?`) in `(\S+)`/g)) {
      const source = read(file).replace(/\s+/g, " ");
      for (const snippet of snippets.slice(1, -1).split("`, `")) {
        t.ok(source.includes(snippet), `${name}: ${snippet} in ${file}`);
        found.push(...numbersOf(snippet));
      }
    }
    // A snippet may count in milliseconds or bytes.
    for (const number of numbersOf(value))
      t.ok(
        [1, 1_000, 1_024].some((unit) => found.includes(number * unit)),
        `${name}: ${number}`,
      );
  }
});

t.test("docs/operate.md lists every setting of a connection, and no other", (t) => {
  t.strictSame(firstCells(between(read("docs/operate.md"), "session")).sort(), Object.keys(sessionSettings).sort());
  t.end();
});

t.test("docs/database.md lists every report view, and no other", async (t) => {
  const database = await createDatabase();
  const owner = connect(database.address, { name: "coupon docs", max: 1 });
  t.teardown(async () => {
    await owner.end();
    await database.drop();
  });
  const views = await owner.rows<{ name: string }>(
    "select 'report.' || viewname as name from pg_views where schemaname = 'report'",
  );
  t.strictSame(firstCells(between(read("docs/database.md"), "views")).sort(), views.map(({ name }) => name).sort());
});

t.test("docs/integrate.md lists the keys and templates of the demo tenants", async (t) => {
  const { tenants } = JSON.parse(read("src/commands/demo-tenants.json"));
  const text = read("docs/integrate.md");
  const all = (kind: string) => tenants.flatMap((tenant: Record<string, object[]>) => tenant[kind]);
  const rows = between(text, "demo-templates").split("\n");
  const afterReversal: Record<string, string> = { consumed: "stays REDEEMED", reissued: "is ISSUED again" };
  t.strictSame(
    firstCells(between(text, "demo-keys")),
    all("credentials").map((one: { access_key: string }) => one.access_key),
  );
  t.equal(firstCells(rows.join("\n")).length, all("templates").length);
  for (const { id, name, after_reversal: after = "consumed" } of all("templates"))
    t.ok(
      rows.some((row) => row.includes(`| \`${id}\` | ${name} |`) && row.endsWith(`${afterReversal[after]} |`)),
      id,
    );
});

t.test("every test file that docs/security.md names exists", async (t) => {
  const files = [...read("docs/security.md").matchAll(/`(test\/[\w/.-]+)`/g)].map(([, name = ""]) => name);
  t.ok(files.length > 10);
  for (const name of files) t.ok(existsSync(path.join(root, name)), name);
});

t.test("every file that docs/design.md names exists", async (t) => {
  const files = [...read("docs/design.md").matchAll(/`((?:src|db|test)\/[\w/.-]+\.\w+)`/g)].map(
    ([, name = ""]) => name,
  );
  t.ok(files.length > 40);
  for (const name of files) t.ok(existsSync(path.join(root, name)), name);
});

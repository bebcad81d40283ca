// The lists and tables in the documents are those of the source, and what the documents link and name exists.
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { sessionSettings } from "../../src/database/session-settings.ts";
import { errors } from "../../src/http/errors.ts";
import { listRefusals } from "../../src/http/openapi/refusals.ts";
import { routes } from "../../src/http/routes/table.ts";
import { root } from "../support/copy.ts";
import { openScratchDatabase } from "../support/database.ts";
import { allMarkdown, read, readAnchors, readLinks } from "./markdown.ts";

const integrate = read("docs/integrate.md");
const operate = read("docs/operate.md");
const config = ["config.ts", "console.ts"].map((name) => read(`src/config/${name}`)).join("\n");
const { tenants } = JSON.parse(read("src/commands/demo-tenants.json"));
const demoOf = (kind: string): any[] => tenants.flatMap((tenant: Record<string, object[]>) => tenant[kind]);

const between = (text: string, name: string): string =>
  new RegExp(`<!-- ${name}:begin -->([^]*)<!-- ${name}:end -->`).exec(text)?.[1] ?? "";

// The names in backticks in the first cell of each row.
const firstCells = (table: string): string[] =>
  [...table.matchAll(/^\| ((?:`[^`]+`(?:, )?)+) \|/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
  );

t.test("docs/integrate.md lists every operation with its method and path, and no other", async (t) => {
  const listed = [...integrate.matchAll(/^\| \[(\w+)\]\([^)]+\) \| (GET|POST) `([^`]+)` \|$/gm)];
  t.strictSame(
    listed.map(([, operation, method, path]) => `${operation} ${method} ${path}`).sort(),
    routes.map(({ operation, method, path }) => `${operation} ${method} ${path}`).sort(),
  );
});

t.test("docs/integrate.md lists every field of a body, and whether it is required", async (t) => {
  const { paths, components } = JSON.parse(read("docs/openapi/a.json"));
  const compared: string[] = [];
  for (const { operation, path } of routes) {
    const section = integrate.split(`### ${operation}\n`)[1]?.split("\n### ")[0] ?? "";
    const listed = [...section.matchAll(/^\| (`.*`) \| (required|optional)/gm)].flatMap(([, names = "", need]) =>
      names.split(", ").map((name) => [name.slice(1, -1), need]),
    );
    const body = paths[path]?.post?.requestBody;
    if (listed.length === 0 || !body) continue;
    compared.push(operation);
    const { $ref } = body.content["application/json"].schema;
    const { properties, required } = components.schemas[$ref.split("/").at(-1)];
    const described = Object.keys(properties).map((name) => [name, required.includes(name) ? "required" : "optional"]);
    t.strictSame(listed.sort(), described.sort(), operation);
  }
  t.ok(compared.includes("lock") && compared.length > 5, compared.join());
});

t.test("docs/integrate.md lists every error code with its status and meaning, by precedence", async (t) => {
  // The page links to its own sections.
  const listed = [
    ...integrate.replace(/\[([^\]]+)\]\(#[\w-]+\)/g, "$1").matchAll(/^\| (\d{3}) \| `([A-Z_]+)` \| (.*) \|$/gm),
  ];
  t.strictSame(
    listed.map(([, status, code, meaning]) => [code, Number(status), meaning]),
    Object.entries(errors).map(([code, { status, meaning }]) => [code, status, meaning]),
  );
});

t.test("docs/certify.md has fifteen cases, and a place for every refusal that a till can get", async (t) => {
  const page = read("docs/certify.md");
  const cases = between(page, "cases").trim().split("\n").slice(2);
  const cells = cases.map((row) => row.slice(2, -2).split(" | "));
  t.strictSame(
    cells.map(([number, ...others]) => [Number(number), others.filter((text) => text.trim() !== "").length]),
    Array.from({ length: 15 }, (_, index) => [index + 1, 4]),
  );
  const ofTills = "lock redeem confirm cancel reverse void query get_redemption list_redemptions".split(" ");
  const refusals = routes
    .filter(({ operation }) => ofTills.includes(operation))
    .flatMap((route) => [...listRefusals(route, "A"), ...listRefusals(route, "B")]);
  const codes = new Set(
    [...page.matchAll(/`([A-Z_]+)`/g)].map(([, code = ""]) => code).filter((code) => code in errors),
  );
  const unsigned = ["ROUTE_NOT_FOUND", "METHOD_NOT_ALLOWED"];
  t.strictSame([...codes].sort(), [...new Set([...refusals, ...unsigned])].sort());
});

t.test("The documents list every setting, demo key and report view, and no other", async (t) => {
  const database = await openScratchDatabase(t);
  const views = await database.rows<{ name: string }>(
    "select 'report.' || viewname as name from pg_views where schemaname = 'report'",
  );
  const settings = [...config.matchAll(/\b(?:(?:read|count)\(|env\[)"([A-Z_]+)"/g)].map(([, name]) => name!);
  const lists: [document: string, table: string, names: string[]][] = [
    [operate, "settings", [...new Set(settings)]],
    [operate, "session", Object.keys(sessionSettings)],
    [integrate, "demo-keys", demoOf("credentials").map(({ access_key }) => access_key)],
    [read("docs/database.md"), "views", views.map(({ name }) => name)],
  ];
  for (const [document, table, names] of lists)
    t.strictSame(firstCells(between(document, table)).sort(), names.sort(), table);
});

t.test("docs/reports/README.md lists ten questions, each as its file asks it", async (t) => {
  const listed = [...read("docs/reports/README.md").matchAll(/^\| (.+\?) \| \[([\w-]+\.sql)\]\(\2\) \|$/gm)];
  const files = readdirSync(path.join(root, "docs/reports")).filter((name) => name.endsWith(".sql"));
  t.strictSame(listed.map(([, , file]) => file!).sort(), files.sort());
  t.equal(files.length, 10);
  for (const [, question = "", file] of listed)
    t.ok(read(`docs/reports/${file}`).startsWith(`-- ${question}`), `${file}: ${question}`);
});

t.test("docs/integrate.md lists the templates of the demo tenants", async (t) => {
  const rows = between(integrate, "demo-templates").split("\n");
  const afterReversal: Record<string, string> = { consumed: "stays REDEEMED", reissued: "is ISSUED again" };
  t.equal(firstCells(rows.join("\n")).length, demoOf("templates").length);
  for (const { id, name, after_reversal: after = "consumed" } of demoOf("templates")) {
    const isShown = (row: string) =>
      row.includes(`| \`${id}\` | ${name} |`) && row.endsWith(`${afterReversal[after]} |`);
    t.ok(rows.some(isShown), id);
  }
});

t.test("docs/operate.md states the default and the limits of each numeric setting", async (t) => {
  const source = config.replace(/(?<=\d)_(?=\d)/g, "");
  const rows = between(operate, "settings").split("\n");
  const settings = [...source.matchAll(/\bcount\("([A-Z_]+)", ([^,]+), (\d+), (\d+)[,)]/g)];
  t.equal(settings.length, 10);
  for (const [, name = "", usual = "", least = "", most = ""] of settings) {
    const row = rows.find((line) => line.startsWith("|") && line.split(" | ")[0]!.includes(`\`${name}\``));
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
    const isFound = (number: number) => [1, 1_000, 1_024].some((unit) => found.includes(number * unit));
    for (const number of numbersOf(value)) t.ok(isFound(number), `${name}: ${number}`);
  }
});

t.test("Every file that docs/design.md and docs/security.md name exists", async (t) => {
  const named = ["design", "security"].flatMap((name) => [
    ...read(`docs/${name}.md`).matchAll(/`((?:src|db|test)\/[\w/.-]+\.\w+)`/g),
  ]);
  t.ok(named.length > 50);
  for (const [, name = ""] of named) t.ok(existsSync(path.join(root, name)), name);
});

t.test("Every relative link and every anchor in Markdown resolves", async (t) => {
  t.ok(allMarkdown.includes("README.md"));
  for (const name of allMarkdown) {
    for (const target of readLinks(read(name))) {
      if (/^[a-z]+:/.test(target)) continue;
      const [file = "", anchor] = target.split("#");
      const linked = file === "" ? name : path.join(path.dirname(name), decodeURIComponent(file));
      const isThere = existsSync(path.join(root, linked));
      t.ok(isThere, `${name}: ${target}`);
      if (anchor !== undefined && linked.endsWith(".md") && isThere)
        t.ok(readAnchors(read(linked)).has(anchor), `${name}: ${target}`);
    }
  }
});

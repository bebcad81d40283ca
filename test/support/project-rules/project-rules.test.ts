// Each project rule finds an example of what it forbids. `npm run check` applies them to the project.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import t from "tap";
import { checkNameStyle, checkSimilarNames } from "./file-names.ts";
import { fits } from "../fits.ts";
import { checkExports, checkFloors } from "./imports.ts";
import { checkColumns, checkFileLength } from "./limits.ts";
import { checkOperations } from "./operations.ts";
import { findPatterns, migrationRules, sqlRules, typescriptRules } from "./patterns.ts";
import type { Breach, SourceFile } from "./source-file.ts";
import { checkCodeFile, checkFunctionLengths, checkFunctions, checkMigrationPairs, checkVerbs } from "./sql-shape.ts";
import { checkWaits } from "./waits.ts";

const good = `-- why
create or replace function rules.find_half(p_x int) returns int
language plpgsql stable as $$
begin
  return p_x / 2;  -- never when others
end
$$;
comment on function rules.find_half(int) is 'Half, and no execute of anything.';
`;
const file = (text: string, name = "db/code/rules/find_half.sql"): SourceFile => ({ path: name, text });
const format = (breaches: Breach[]): string[] =>
  breaches.map(({ path: name, line, message }) => `${name}:${line}: ${message}`);

t.test("a correct function breaks no rule", async (t) => {
  const checks = [checkFunctions, checkVerbs, checkFunctionLengths, checkFileLength, checkCodeFile, checkColumns];
  t.strictSame([...findPatterns(file(good), sqlRules), ...checks.flatMap((check) => check(file(good)))], []);
});

t.test("an operation has a function in db/code/api and a case in run_operations", async (t) => {
  const route = file('export const getHalf: Route = {\n  operation: "get_half",\n};\n', "src/http/routes/get-half.ts");
  const cases = (text: string): SourceFile => file(text, "db/code/rules/request/run_operations.sql");
  t.strictSame(format(checkOperations([route], [cases("")])), [
    "src/http/routes/get-half.ts:2: get_half has no function: add db/code/api/get_half.sql",
    "src/http/routes/get-half.ts:2: get_half has no case in db/code/rules/request/run_operations.sql",
  ]);
  const code = [cases("when 'get_half' then"), file("", "db/code/api/get_half.sql")];
  t.strictSame(checkOperations([route], code), []);
});

t.test("SQL has no swallowed errors, dynamic statements, cascades or enums", async (t) => {
  const bad = [
    "exception when others then",
    "execute 'select 1';",
    "drop table core.x cascade;",
    "create type core.x as enum ('A');",
  ];
  t.equal(findPatterns(file(bad.join("\n")), sqlRules).length, bad.length);
  fits(t, format(findPatterns(file("select 1;\n\nexecute v_text;"), sqlRules)), [
    /^db\/code\/rules\/find_half\.sql:3: no dynamic SQL/,
  ]);
  const allowed = "for each row execute function core.f();\ngrant execute on function f to g;";
  t.strictSame(findPatterns(file(allowed), sqlRules), []);
});

t.test("a function states its volatility; one that roles or triggers call also fixes its search_path", async (t) => {
  fits(t, format(checkFunctions(file(good.replace(" stable", "")))), [/find_half does not state its volatility/]);
  const ofReports = good.replaceAll("rules.find_half", "report.find_half");
  fits(t, format(checkFunctions(file(ofReports))), [/report\.find_half does not fix its search_path/]);
  const fixed = ofReports.replace("stable as", "stable set search_path = pg_catalog, pg_temp as");
  t.strictSame(checkFunctions(file(fixed)), []);
  const body = "create or replace function report.half(p_x int) returns int\nlanguage sql immutable\nreturn p_x / 2;";
  t.strictSame(checkFunctions(file(body)), []);
  const ofOwner = body.replace("immutable", "immutable security definer");
  fits(t, format(checkFunctions(file(ofOwner))), [/report\.half does not fix its search_path/]);
  const ofRules = ofOwner.replace("report.half", "rules.half");
  fits(t, format(checkFunctions(file(ofRules))), [/rules\.half does not fix its search_path/]);
});

t.test("the name of a function begins with a verb", async (t) => {
  fits(t, format(checkVerbs(file(good.replaceAll("find_half", "half_of")))), [/rules\.half_of must begin with a verb/]);
  t.strictSame(checkVerbs(file(good.replaceAll("find_half", "is_half"))), []);
});

t.test("a function has at most 70 lines, a file at most 250", async (t) => {
  const withLines = (count: number): SourceFile =>
    file(good.replace("begin\n", `begin\n${"  -- more\n".repeat(count)}`) + good);
  t.strictSame(checkFunctionLengths(withLines(64)), []);
  fits(t, format(checkFunctionLengths(withLines(65))), [/:2: rules\.find_half has 71 lines; the limit is 70/]);
  t.strictSame(checkFileLength(file("x\n".repeat(250))), []);
  fits(t, format(checkFileLength(file("x\n".repeat(251)))), [/has 251 lines; the limit is 250/]);
});

t.test("a file makes the one function that its name says, replaceable and with a comment", async (t) => {
  fits(t, format(checkCodeFile(file(good, "db/code/rules/other.sql"))), [
    /makes rules\.find_half, not just rules\.other/,
    /has no comment/,
  ]);
  fits(t, format(checkCodeFile(file(good + good))), [/makes rules\.find_half, rules\.find_half/]);
  fits(t, format(checkCodeFile(file(good.replace("create or replace", "create")))), [/is not "create or replace"/]);
  fits(t, format(checkCodeFile(file(good.replace(/comment on[^]*/, "")))), [/has no comment on rules\.find_half/]);
});

t.test("migrations call no replaceable code, and add no column that rewrites its table", async (t) => {
  const breachesOf = (text: string): number =>
    findPatterns(file(text, "db/migrations/009-x.sql"), migrationRules).length;
  t.equal(breachesOf("alter table core.x add check (rules.half(a) > 1);"), 1);
  t.equal(breachesOf("alter table core.x add column y core.minor_units;"), 1);
  t.equal(breachesOf("alter table core.x add column y bigint;"), 0);
});

t.test("a migration is a .sql and a .ts file", async (t) => {
  fits(t, format(checkMigrationPairs(["001-a.sql", "001-a.ts", "002-b.sql"])), [/002-b\.sql:1: has no \.ts/]);
  fits(t, format(checkMigrationPairs(["001-a.ts"])), [/001-a\.ts:1: has no \.sql/]);
});

t.test("environment, driver and transactions stay where they belong", async (t) => {
  const bad = [
    "const x = process.env.PORT",
    "import postgres from 'postgres'",
    "import pg from 'pg'",
    "await sql.begin(async () => {})",
    "await db.rows('begin')",
    "import { x } from './y'",
    "export * from './y.ts'",
  ];
  t.equal(findPatterns(file(bad.join("\n"), "src/x.ts"), typescriptRules).length, bad.length);
});

t.test("SQL has 100 columns, TypeScript and prose have 120", async (t) => {
  const line = (count: number): string => "ü".repeat(count);
  t.equal(checkColumns(file(line(100))).length + checkColumns(file(line(120), "src/x.ts")).length, 0);
  fits(t, format(checkColumns(file(`\n${line(101)}`))), [/:2: has 101 columns; the limit is 100/]);
  fits(t, format(checkColumns(file(line(121), "src/x.ts"))), [/src\/x\.ts:1: has 121 columns; the limit is 120/]);
  fits(t, format(checkColumns(file(line(121), "docs/x.md"))), [/docs\/x\.md:1: has 121 columns/]);
  const exempt = [`| ${line(200)} |`, "```", line(200), "```", `https://example.com/${"x".repeat(200)}`];
  t.strictSame(checkColumns(file(exempt.join("\n"), "docs/x.md")), []);
});

t.test("a folder imports only from folders below it", async (t) => {
  const check = (name: string, from: string): string[] =>
    format(checkFloors(file(`// why\nimport { x } from "${from}";`, name)));
  fits(t, check("src/common/x.ts", "../gate/lane.ts"), [
    /^src\/common\/x\.ts:2: imports src\/gate\/lane\.ts: common may not import from gate/,
  ]);
  fits(t, check("src/worker/x.ts", "../gate/lane.ts"), [/worker may not import from gate/]);
  fits(t, check("src/http/x.ts", "./routes/lock.ts"), [/http may not import from http\/routes/]);
  fits(t, check("src/work.ts", "./serve.ts"), [/work\.ts may not import from serve\.ts/]);
  fits(t, check("src/http/x.ts", "../../test/support/x.ts"), [/src imports only from src/]);
  fits(t, check("src/tools/x.ts", "../common/log.ts"), [/is in no folder of the floors/]);
  fits(t, format(checkFloors(file('export { x } from "../gate/lane.ts";', "src/common/x.ts"))), [/may not import/]);
  fits(t, format(checkFloors(file('await import("../gate/lane.ts");', "src/common/x.ts"))), [/may not import/]);
  const client = "../../clients/typescript/src/index.ts";
  fits(t, check("src/http/x.ts", client), [/src imports only from src/]);
  fits(t, check("src/commands/x.ts", client.replace("index", "sender")), [/src imports only from src/]);
  t.strictSame(check("src/commands/x.ts", client), []);
  t.strictSame(check("src/http/routes/x.ts", "../route.ts"), []);
  t.strictSame(check("src/http/x.ts", "./y.ts"), []);
  t.strictSame(check("src/start.ts", "./commands/x.ts"), []);
});

t.test("another file imports every function, class and constant that src exports", async (t) => {
  const a = file(
    "export function f() {}\nexport const [c] = [1];\nexport const d = 1;\nexport type T = 1;",
    "src/a.ts",
  );
  const importing = (clause: string): SourceFile => file(`import ${clause} from "./a.ts";`, "src/b.ts");
  const check = (...others: SourceFile[]): string[] => format(checkExports([a], [a, ...others]));
  fits(t, check(), [/a\.ts:1: exports f, which no other file imports/, /a\.ts:3: exports d/]);
  fits(t, check(importing("{ type T, d as e }")), [/exports f,/]);
  t.strictSame(check(importing("{ f, d }")), []);
  t.strictSame(check(importing("* as a")), []);
  t.strictSame(check(file('const { f } = await import("./a.ts");', "src/b.ts")), []);
  fits(t, format(checkExports([file("export { x, y as z };", "src/c.ts")], [])), [/exports x/, /exports z/]);
});

t.test("file names are kebab-case, in SQL snake_case, and never differ only by an s", async (t) => {
  fits(t, format(checkNameStyle(["src/readCall.ts", "src/read_call.ts", "db/code/api/get-request.sql"])), [
    /src\/readCall\.ts:1: the name must be kebab-case/,
    /src\/read_call\.ts:1: the name must be kebab-case/,
    /get-request\.sql:1: the name must be snake_case/,
  ]);
  t.strictSame(checkNameStyle(["src/read-call.ts", "test/a-b.test.ts", "db/code/api/get_request.sql"]), []);
  fits(t, format(checkSimilarNames(["src/http/route.ts", "src/commands/routes.ts"])), [
    /src\/http\/route\.ts:1: the name differs from that of src\/commands\/routes\.ts only by an s/,
  ]);
});

t.test("a wait of a test has a bound", async (t) => {
  const check = (text: string): string[] => format(checkWaits(file(text, "test/x.ts")));
  const endless = [
    "while ((await list()).length < 3);",
    "while (received.length < 3) await sleep(20);",
    "for (;;) {\n  if (await isOver()) return;\n  await sleep(20);\n}",
    "for (let due = await list(); due.length > 0; due = await list()) {\n  await work(due);\n}",
  ];
  for (const text of endless) fits(t, check(`\n${text}\n`), [/^test\/x\.ts:2: this loop may never end/]);
  for (const text of ['await once(socket, "data");', 'await new Promise((resolve) => socket.once("end", resolve));'])
    fits(t, check(text), [/^test\/x\.ts:1: this event may never come/]);
  const ending = [
    'await waitFor("the end", once(socket, "end"));',
    "for (const each of [1, 2]) await send(each);",
    "for (let count = 0; count < 3; count += 1) await send(count);",
    "while (performance.now() < deadline) await sleep(20);",
    "while (!isStopping) {\n  await send();\n}",
    "for (let next = list.pop(); next !== undefined; next = list.pop()) await send(next);",
    "for (;;) {\n  if (isFound(1)) return;\n}",
  ];
  t.strictSame(check(ending.join("\n")), []);
});

t.test("oxlint finds import cycles, long files and long functions", async (t) => {
  const config = path.resolve(import.meta.dirname, "../../../.oxlintrc.json");
  // Outside the project: oxlint ignores .tap.
  const folder = mkdtempSync(path.join(tmpdir(), "coupon-oxlint-"));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const files = {
    "a.ts": 'import type { B } from "./b.ts";\nexport type A = B;\n',
    "b.ts": 'import type { A } from "./a.ts";\nexport type B = A;\n',
    "file.ts": `export const one = 1;\n${"// more\n".repeat(250)}`,
    "function.ts": `export function f(): void {\n${"  f();\n".repeat(69)}}\n`,
    "fits.ts": `export function f(): void {\n${"  f();\n".repeat(68)}}\n${"// more\n".repeat(180)}`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
  const oxlint = path.resolve(config, "../node_modules/.bin/oxlint");
  // tap adds NODE_OPTIONS to every child process, and oxlint does not start with them.
  const command = ["-u", "NODE_OPTIONS", oxlint, "-c", config, "--format=unix", folder];
  const { stdout } = spawnSync("env", command, { encoding: "utf8" });
  const found = stdout
    .split("\n")
    .flatMap((line) => /([\w.]+):\d+:\d+: .*\/(.*)\]$/.exec(line)?.slice(1).join(" ") ?? []);
  t.strictSame(found.sort(), [
    "a.ts import(no-cycle)",
    "b.ts import(no-cycle)",
    "file.ts eslint(max-lines)",
    "function.ts eslint(max-lines-per-function)",
  ]);
});

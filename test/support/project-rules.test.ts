// The house laws bite: each is shown what it forbids. That the project keeps them is `npm run check`.
import t from "tap";
import { applyLaws, checkCodeFile, checkFunctions, migrationLaws, sqlLaws, typescriptLaws } from "./project-rules.ts";

const good = `-- why
create or replace function rules.half(p_x int) returns int
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  return p_x / 2;  -- never when others
end
$$;
comment on function rules.half(int) is 'Half, and no execute of anything.';
`;
const file = (text: string, path = "db/code/rules/half.sql"): { path: string; text: string } => ({ path, text });

t.test("a function as it should be breaks no law", async (t) => {
  t.strictSame([...applyLaws(file(good), sqlLaws), ...checkFunctions(file(good)), ...checkCodeFile(file(good))], []);
});

t.test("SQL: swallowed errors, dynamic statements, cascades and enums are found where they stand", async (t) => {
  const bad = [
    "exception when others then",
    "execute 'select 1';",
    "drop table core.x cascade;",
    "create type core.x as enum ('A');",
  ];
  t.equal(applyLaws(file(bad.join("\n")), sqlLaws).length, bad.length);
  t.match(applyLaws(file("select 1;\n\nexecute v_text;"), sqlLaws), [/^db\/code\/rules\/half\.sql:3: no dynamic SQL/]);
  t.strictSame(
    applyLaws(file("for each row execute function core.f();\ngrant execute on function f to g;"), sqlLaws),
    [],
  );
});

t.test("a function states its volatility and its search_path, or has a body that needs none", async (t) => {
  t.match(checkFunctions(file(good.replace(" stable", ""))), [/rules\.half does not state its volatility/]);
  t.match(checkFunctions(file(good.replace("set search_path = pg_catalog, pg_temp ", ""))), [
    /rules\.half does not fix its search_path/,
  ]);
  t.strictSame(
    checkFunctions(
      file("create or replace function rules.half(p_x int) returns int\nlanguage sql immutable\nreturn p_x / 2;"),
    ),
    [],
  );
});

t.test("a file makes the one function that its name says, replaceable and with a comment", async (t) => {
  t.match(checkCodeFile(file(good, "db/code/rules/other.sql")), [
    /makes rules\.half, not just rules\.other/,
    /has no comment/,
  ]);
  t.match(checkCodeFile(file(good + good)), [/makes rules\.half, rules\.half/]);
  t.match(checkCodeFile(file(good.replace("create or replace", "create"))), [/is not "create or replace"/]);
  t.match(checkCodeFile(file(good.replace(/comment on[^]*/, ""))), [/has no comment on rules\.half/]);
});

t.test("migrations call no replaceable code, and add no column that would rewrite its table", async (t) => {
  t.equal(
    applyLaws(file("alter table core.x add check (rules.half(a) > 1);", "db/migrations/009-x.sql"), migrationLaws)
      .length,
    1,
  );
  t.equal(
    applyLaws(file("alter table core.x add column y core.minor_units;", "db/migrations/009-x.sql"), migrationLaws)
      .length,
    1,
  );
  t.equal(
    applyLaws(file("alter table core.x add column y bigint;", "db/migrations/009-x.sql"), migrationLaws).length,
    0,
  );
});

t.test("TypeScript: environment, driver and transactions stay where they belong", async (t) => {
  const bad = [
    "const x = process.env.PORT",
    "import postgres from 'postgres'",
    "import pg from 'pg'",
    "await sql.begin(async () => {})",
    "await db.rows('begin')",
    "import { x } from './y'",
  ];
  t.equal(applyLaws(file(bad.join("\n"), "src/x.ts"), typescriptLaws).length, bad.length);
});

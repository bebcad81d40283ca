// The slips that the mutator makes, its verdicts, and what breaks.txt and the marks in the code say.
import { existsSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { applyEdits, copyCheckout, root } from "../../support/copy.ts";
import { readRun } from "../../support/database.ts";
import { removeFolder } from "../../support/temporary-folder.ts";
import { readBreaks } from "./breaks.ts";
import { judge } from "./judge.ts";
import { listFiles, listMutants, nameMutants, readText } from "./mutant.ts";
import { mutateSchema, mutateSql } from "./sql-operators.ts";
import { mutateTypeScript } from "./ts-operators.ts";

const sql = `create function rules.x(p_a int default 1) returns int
language plpgsql set work_mem = '64kB' as $$
begin
  -- equivalent mutant (condition false): why
  if p_a > 5 then
    select c.n into p_a from core.c where c.x and c.n < now() limit 1 for update;
  end if;
end
$$;
`;
const schema = `create table core.x (
  a int not null,
  constraint a_is_small check (a < 7)
);
`;
const typescript = `import a from "./a.ts";
if (n < 3) await a(list?.filter(isGood), { b: "c" });
`;
const nameSql = (text: string) => nameMutants("db/code/rules/x.sql", text, mutateSql(text));
const idsOf = (text: string) => nameSql(text).map(({ id }) => id);

t.test("The slips in SQL, in a table and in TypeScript, by what replaces the code", async (t) => {
  const mutants = [
    ...nameSql(sql),
    ...nameMutants("db/migrations/x.sql", schema, mutateSchema(schema)),
    ...nameMutants("src/x.ts", typescript, mutateTypeScript(typescript)),
  ].filter(({ isEquivalent }) => !isEquivalent);
  const kinds = Map.groupBy(mutants, ({ operator }) => operator);
  const found = [...kinds].map(([kind, those]) => [kind, those.map(({ replacement }) => replacement)]);
  t.strictSame(Object.fromEntries(found), {
    condition: ["true", "false", "true"],
    boundary: [">=", "<=", "<=", "<="],
    literal: ["6", "4", "8", "6", "4", "2", '"x"'],
    statement: ["null;"],
    operand: ["true", "true"],
    function: ["clock_timestamp"],
    lock: [""],
    "not null": [""],
    check: ["check (true or "],
    await: ['a(list?.filter(isGood), { b: "c" })'],
    method: ["list"],
    optional: ["."],
    argument: [""],
    property: [""],
  });
});

t.test("A mutant keeps its ID when lines are added above, marks among them", async (t) => {
  t.strictSame(idsOf(`-- more\n${sql.replace(/.*equivalent.*\n/, "")}`), idsOf(sql));
  t.equal(idsOf(sql)[0], "506f152b4aa3", "the IDs of earlier runs stay valid");
});

t.test("Each mark in the code marks a mutant", async (t) => {
  const marks = listFiles().flatMap((file) =>
    readText(file)
      .split("\n")
      .flatMap((line, index) => {
        const [before, mark] = line.split(/(?:--|\/\/) equivalent mutant \(/);
        return mark === undefined ? [] : [{ file, line: index + (before!.trim() === "" ? 2 : 1) }];
      }),
  );
  const mutants = listMutants([...new Set(marks.map(({ file }) => file))]);
  const marked = new Set(mutants.filter(({ isEquivalent }) => isEquivalent).map(({ file, line }) => `${file}:${line}`));
  for (const { file, line } of marks) t.ok(marked.has(`${file}:${line}`), `${file}:${line}`);
});

t.test("Each break applies to the code, and its test file exists", async (t) => {
  for (const { name, test, edits } of readBreaks()) {
    t.doesNotThrow(() => applyEdits(root, edits), name);
    t.ok(test === undefined || existsSync(path.join(root, test)), `${name}: ${test}`);
  }
});

t.test("A slip is loaded, and the first test file that fails has noticed it; a late one has not", async (t) => {
  const { server, template, prefix } = readRun();
  const site = { server, template, prefix: `${prefix}mutate${process.pid}_`, folder: copyCheckout() };
  t.teardown(() => removeFolder(site.folder));
  const file = "db/code/rules/answer/format_id.sql";
  const test = "test/formats/formats.test.ts";
  const judgeEdit = async (find: string, replace: string, longestMs = 60_000) => {
    const texts = applyEdits(root, [{ file, find, replace }]);
    const { status, by, passed } = await judge(site, texts, [{ test, longestMs }]);
    return [status, by.split(": ")[0], ...passed];
  };
  t.strictSame(await judgeEdit("0 .. 2", "0 .. 1"), ["killed", test]);
  t.strictSame(await judgeEdit("-- The external form", "-- An external form"), ["survived", "", test]);
  t.strictSame(await judgeEdit("0 .. 2", "0 .. loop"), ["invalid", ""]);
  t.strictSame(await judgeEdit("0 .. 2", "0 .. 1", 1), ["timeout", test]);
});

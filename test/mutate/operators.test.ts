// Which slips the mutator makes: every edit of a small source, compared in full.
import t from "tap";
import { type Edit, nameMutants, shuffle } from "./mutant.ts";
import { mutateSql } from "./sql-operators.ts";
import { mutateTypeScript } from "./ts-operators.ts";

const show = (file: string, text: string, edits: Edit[]): string[] =>
  nameMutants(file, text, edits).map(({ operator, line, after }) => `${line} ${operator}: ${after}`);
const sql = (text: string): string[] => show("db/code/rules/x.sql", text, mutateSql(text));
const ts = (text: string): string[] => show("src/x.ts", text, mutateTypeScript(text));

t.test("a view: operands, comparisons, boundaries, literals, columns, order and limit", async (t) => {
  const view = `-- né
create or replace view report.x as
select c.a_id from core.c
where c.a_id = 'é1' and c.n <= 5 or c.b_id is null
order by c.a_id desc, c.n
limit 3;
comment on view report.x is 'a < b and c';
`;
  t.strictSame(sql(view), [
    "3 column: select c.b_id from core.c",
    "4 operand: where true and c.n <= 5 or c.b_id is null",
    "4 operand: where false or c.b_id is null",
    "4 column: where c.b_id = 'é1' and c.n <= 5 or c.b_id is null",
    "4 comparison: where c.a_id <> 'é1' and c.n <= 5 or c.b_id is null",
    "4 operand: where c.a_id = 'é1' and true or c.b_id is null",
    "4 boundary: where c.a_id = 'é1' and c.n < 5 or c.b_id is null",
    "4 literal: where c.a_id = 'é1' and c.n <= 6 or c.b_id is null",
    "4 operand: where c.a_id = 'é1' and c.n <= 5 or false",
    "4 column: where c.a_id = 'é1' and c.n <= 5 or c.a_id is null",
    "4 negation: where c.a_id = 'é1' and c.n <= 5 or c.b_id is not null",
    "5 order: limit 3;",
    "5 column: order by c.b_id desc, c.n",
    "5 order: order by c.a_id asc, c.n",
    "5 order: order by c.a_id desc, c.n desc",
    "6 limit: ;",
    "6 literal: limit 4;",
  ]);
});

t.test("PL/pgSQL: the clock, conditions, statements, assignments and locks, but not heads and messages", async (t) => {
  const body = `create function rules.x(p_a int default 1) returns core.call[]
language plpgsql volatile set work_mem = '64kB' as $$
declare
  v_n  int := 2;
begin
  if p_a between 1 and 2 and not exists (select from core.t) then
    raise exception 'a message';
  elsif v_n in (1, 2) then
    select c.n into v_n
    from core.c where c.x = 'A' -- and not < 1
    for update skip locked;
  end if;
  for v_n in select 1 loop
    update core.c set a = now(), b = coalesce(p_a, v_n);
    perform rules.y(v_n - 1);
  end loop;
  return (select case when p_a > 1 then min(x) else 1 end from core.c);
end
$$;
`;
  t.strictSame(sql(body), [
    "4 literal: v_n  int := 3;",
    "6 operand: if true and not exists (select from core.t) then",
    "6 condition: if false then",
    "6 condition: if true then",
    "6 negation: if p_a not between 1 and 2 and not exists (select from core.t) then",
    "6 literal: if p_a between 2 and 2 and not exists (select from core.t) then",
    "6 literal: if p_a between 1 and 3 and not exists (select from core.t) then",
    "6 negation: if p_a between 1 and 2 and exists (select from core.t) then",
    "6 operand: if p_a between 1 and 2 and true then",
    "7 statement: null;",
    "8 condition: elsif false then",
    "8 condition: elsif true then",
    "8 negation: elsif v_n not in (1, 2) then",
    "8 literal: elsif v_n in (2, 2) then",
    "8 element: elsif v_n in (2) then",
    "8 element: elsif v_n in (1) then",
    "8 literal: elsif v_n in (1, 3) then",
    "9 statement: null;",
    "10 condition: from core.c where true -- and not < 1",
    "10 comparison: from core.c where c.x <> 'A' -- and not < 1",
    "10 literal: from core.c where c.x = 'x' -- and not < 1",
    "11 lock: ;",
    "11 lock: for update ;",
    "13 literal: for v_n in select 2 loop",
    "14 statement: null;",
    "14 assignment: update core.c set b = coalesce(p_a, v_n);",
    "14 function: update core.c set a = clock_timestamp(), b = coalesce(p_a, v_n);",
    "14 assignment: update core.c set a = now();",
    "14 coalesce: update core.c set a = now(), b = p_a;",
    "14 coalesce: update core.c set a = now(), b = v_n;",
    "15 statement: null;",
    "15 sign: perform rules.y(v_n + 1);",
    "15 literal: perform rules.y(v_n - 2);",
    "17 condition: return (select case when false then min(x) else 1 end from core.c);",
    "17 boundary: return (select case when p_a >= 1 then min(x) else 1 end from core.c);",
    "17 literal: return (select case when p_a > 2 then min(x) else 1 end from core.c);",
    "17 function: return (select case when p_a > 1 then max(x) else 1 end from core.c);",
    "17 literal: return (select case when p_a > 1 then min(x) else 2 end from core.c);",
  ]);
});

t.test("TypeScript: conditions, boundaries, operands, awaits, statements, elements, methods and units", async (t) => {
  const text = `import a from "./a.ts";
export async function x(n: number, list?: string[]): Promise<string[]> {
  const wait = 5_000 as number;
  if (n < 3 && !list) throw new Error("too few items");
  await a(wait);
  n += 1;
  return list?.filter((one) => one !== "b" + n) ?? ["c", "d"];
}
`;
  t.strictSame(ts(text), [
    "3 literal: const wait = 50000 as number;",
    '4 condition: if (false) throw new Error("too few items");',
    '4 condition: if (true) throw new Error("too few items");',
    '4 operand: if (n < 3) throw new Error("too few items");',
    '4 operand: if (!list) throw new Error("too few items");',
    '4 boundary: if (n <= 3 && !list) throw new Error("too few items");',
    '4 literal: if (n < 4 && !list) throw new Error("too few items");',
    '4 negation: if (n < 3 && list) throw new Error("too few items");',
    "5 await: a(wait);",
    "5 statement: ;",
    "6 statement: ;",
    "6 sign: n -= 1;",
    "6 literal: n += 2;",
    '7 method: return list ?? ["c", "d"];',
    '7 operand: return list?.filter((one) => one !== "b" + n);',
    '7 operand: return ["c", "d"];',
    '7 optional: return list.filter((one) => one !== "b" + n) ?? ["c", "d"];',
    '7 comparison: return list?.filter((one) => one === "b" + n) ?? ["c", "d"];',
    '7 literal: return list?.filter((one) => one !== "x" + n) ?? ["c", "d"];',
    '7 literal: return list?.filter((one) => one !== "b" + n) ?? ["x", "d"];',
    '7 element: return list?.filter((one) => one !== "b" + n) ?? ["d"];',
    '7 element: return list?.filter((one) => one !== "b" + n) ?? ["c"];',
    '7 literal: return list?.filter((one) => one !== "b" + n) ?? ["c", "x"];',
  ]);
});

t.test("a mutant keeps its ID when lines are added above, and its place in the order of a seed", async (t) => {
  const text = "select 1;\ncreate view report.x as select 1 as a, 2 as b where 1 < 2;\n";
  const name = (source: string): string[] =>
    shuffle(nameMutants("db/code/report/x.sql", source, mutateSql(source)), "7").map(({ id }) => id);
  t.strictSame(name(`-- more\n${text}`), name(text));
  t.equal(new Set(name(text)).size, 6);
});

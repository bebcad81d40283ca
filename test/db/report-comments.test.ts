// The comments of the report views: a reader finds the meaning of each column, and a tool finds keys and joins, as
// PostGraphile's smart comments: @primaryKey a,b and @foreignKey (a,b) references report.view (c,d).
import t from "tap";
import { fillEveryTable } from "../support/every-table.ts";
import type { Session } from "../../src/database/types.ts";
import { fits } from "../support/fits.ts";

type Reference = { view: string; columns: string; target: string; targetColumns: string };

let session: Session;
t.before(async () => {
  ({ session } = await fillEveryTable(t));
});

// Rows without a key of their own: an attempt of a delivery, a request without a calling party, a violation.
const withoutKey = ["delivery_attempt", "invariants", "request"];

async function readKeys(): Promise<{ keys: Map<string, string>; references: Reference[] }> {
  const views = await session.rows<{ name: string; comment: string }>(
    `select relname::text as name, obj_description(oid, 'pg_class') as comment from pg_class
     where relnamespace = 'report'::regnamespace and relkind = 'v' order by 1`,
  );
  const keys = new Map<string, string>();
  const references: Reference[] = [];
  for (const { name, comment } of views) {
    for (const tag of comment.split("\n").filter((line) => line.startsWith("@"))) {
      const key = /^@primaryKey ([\w,]+)$/.exec(tag);
      const reference = /^@foreignKey \(([\w,]+)\) references report\.(\w+) \(([\w,]+)\)$/.exec(tag);
      if (key !== null) keys.set(name, key[1]!);
      else if (reference !== null)
        references.push({ view: name, columns: reference[1]!, target: reference[2]!, targetColumns: reference[3]! });
      else throw new Error(`${name}: unknown tag ${tag}`);
    }
    if (!keys.has(name)) t.ok(withoutKey.includes(name), `${name} has a key`);
  }
  return { keys, references };
}

t.test("Each column of each report view, and each function, has a comment", async (t) => {
  const columns = await session.rows(
    `select c.relname || '.' || a.attname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'report'::regnamespace and a.attnum > 0 and not a.attisdropped
       and coalesce(col_description(c.oid, a.attnum), '') = '' order by 1`,
  );
  const functions = await session.rows(
    `select oid::regprocedure::text as name from pg_proc
     where pronamespace = 'report'::regnamespace and coalesce(obj_description(oid, 'pg_proc'), '') = ''`,
  );
  t.strictSame(
    [...columns, ...functions].map(({ name }) => name),
    [],
  );
});

t.test("The key of each view is unique and has no nulls", async (t) => {
  const { keys } = await readKeys();
  for (const [view, columns] of keys) {
    const [row] = await session.rows(
      `select count(*)::int as rows, count(distinct (${columns}))::int as keys,
              count(*) filter (where num_nulls(${columns}) > 0)::int as nulls from report.${view}`,
    );
    fits(t, row, { keys: row!["rows"], nulls: 0 }, view);
    t.ok(row!["rows"] as number, `${view} has rows`);
  }
});

t.test("Each reference names the key of a view and finds its row", async (t) => {
  const { keys, references } = await readKeys();
  const used = new Set<string>();
  for (const { view, columns, target, targetColumns } of references) {
    t.equal(keys.get(target), targetColumns, `${view} (${columns}) references a key`);
    const [row] = await session.rows(
      `select count(*)::int as set,
              count(*) filter (where (${columns}) in (select ${targetColumns} from report.${target}))::int as found
       from report.${view} where num_nulls(${columns}) = 0`,
    );
    t.equal(row!["found"], row!["set"], `${view} (${columns}) finds its row in ${target}`);
    if (row!["set"] !== 0) used.add(view);
  }
  t.strictSame([...used].sort(), [...new Set(references.map(({ view }) => view))].sort(), "views with rows");
});

// The lines of the files of a statement, as the database sends them page by page: those after a number, in order,
// however they are stored and read.
import t, { type Test } from "tap";
import { openScratchDatabase } from "../support/database.ts";
import { scenario } from "../support/scenario.ts";
import { fillRedemptions } from "../tools/bench/fill.ts";

/** Reads `limit` lines after each number. is_right: the line is the one that is stored under its number. */
async function hasAllPages(
  t: Test,
  lines: number,
  read: (after: number, limit: number) => Promise<{ number: number; is_right: boolean }[]>,
): Promise<void> {
  for (let after = 0; after <= lines; after += 1)
    for (const limit of [1, 3, 8, lines]) {
      const page = await read(after, limit);
      const count = Math.min(limit, lines - after);
      const wanted = Array.from({ length: count }, (_, index) => ({ number: after + 1 + index, is_right: true }));
      t.strictSame(
        page.map((line) => ({ ...line })),
        wanted,
        `${limit} lines after ${after}`,
      );
    }
}

// Several pages of postings are on the day.
t.test("Each page of the details has the lines after a number, in order", async (t) => {
  const world = await scenario(t);
  const { id } = await world.makeBatch(world.a.maker, "tpl_fixed", 20);
  const lines = await fillRedemptions(world, [id], { reversed: 10 });
  for (let step = 0; step < 4; step += 1) await world.owner.rows("select jobs.sequence_events(8)");
  const psql = await world.openPsql({ triggers: false });
  // The first postings are stored last, and no index returns them in order.
  await psql.run(
    `update core.posting_page set first_number = 0 where first_number = 1;
     update core.posting_page set first_number = 1 where first_number = 0;
     set enable_indexscan = off; set enable_indexonlyscan = off`,
  );
  const pages = await psql.rows("select first_number from core.posting_page");
  t.ok(pages.length >= 3 && pages.at(-1)!["first_number"] === 1, `${pages.length} pages, the first one is the last`);
  await hasAllPages(t, lines, (after, limit) =>
    psql.rows(
      `select s.number, s.fields[2] = p.entry_id::text as is_right
       from (select distinct tenant_id, distributor_id, business_date from core.posting_page) d
       cross join lateral rules.read_statement_page(
         d.tenant_id, d.distributor_id, d.business_date, 'detail', $1, $2) with ordinality s (number, fields, place)
       join rules.posting p on p.number = s.number
       order by s.place`,
      [after, limit],
    ),
  );
});

t.test("Each page of a summary has the lines after a number, in order", async (t) => {
  const session = await openScratchDatabase(t);
  const lines = 7;
  // The last line is stored first, and no index returns them in order.
  await session.run(
    `set session_replication_role = replica;
     set enable_indexscan = off;
     insert into core.statement_line
     select 1, 1, '2026-01-01', ${lines} + 1 - n, 1, 1, 'EUR', 10 * (${lines} + 1 - n), 1000, 0, 0
     from generate_series(1, ${lines}) n`,
  );
  await hasAllPages(t, lines, (after, limit) =>
    session.rows(
      `select s.number, s.fields[5] = (10 * s.number)::text as is_right
       from rules.read_statement_page(1, 1, '2026-01-01', 'summary', $1, $2) with ordinality s (number, fields, place)
       order by s.place`,
      [after, limit],
    ),
  );
});

// The lines of the files of a statement, as the database sends them page by page.
import t from "tap";
import { openSession } from "../../src/database/connect.ts";
import { openScratchDatabase } from "../support/database.ts";
import { redeemWhole } from "../support/ledger.ts";
import { startService } from "../support/service.ts";

// Several pages of postings are on the day.
t.test("Each page has the lines after a number, in order, however the postings are stored and read", async (t) => {
  const service = await startService(t);
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 20);
  const lines = await redeemWhole(service, id, "mch_a");
  for (let step = 0; step < 4; step += 1) await service.owner.rows("select jobs.sequence_events(8)");
  const psql = openSession(service.address, { name: "psql" });
  t.teardown(() => psql.end());
  // The first postings are stored last, and no index returns them in order.
  await psql.run(
    `set session_replication_role = replica;
     update core.posting_page set first_number = 0 where first_number = 1;
     update core.posting_page set first_number = 1 where first_number = 0;
     set enable_indexscan = off; set enable_indexonlyscan = off`,
  );
  const pages = await psql.rows("select first_number from core.posting_page");
  t.ok(pages.length >= 3 && pages.at(-1)!["first_number"] === 1, `${pages.length} pages, the first one is the last`);
  for (let after = 0; after <= lines; after += 1)
    for (const limit of [1, 8, lines]) {
      const page = await psql.rows<{ number: number; entry: string; stored: string }>(
        `select s.number, s.fields[2] as entry, p.entry_id::text as stored
         from (select distinct tenant_id, distributor_id, business_date from core.posting_page) d
         cross join lateral rules.read_statement_page(
           d.tenant_id, d.distributor_id, d.business_date, 'detail', $1, $2) with ordinality s (number, fields, place)
         join rules.posting p on p.number = s.number
         order by s.place`,
        [after, limit],
      );
      const wanted = Array.from({ length: Math.min(limit, lines - after) }, (_, index) => after + 1 + index);
      t.strictSame(
        page.map(({ number, entry, stored }) => [number, entry === stored]),
        wanted.map((number) => [number, true]),
        `${limit} lines after ${after}`,
      );
    }
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
  for (let after = 0; after <= lines; after += 1)
    for (const limit of [1, 3, lines]) {
      const page = await session.rows<{ number: number; count: string }>(
        `select s.number, s.fields[5] as count
         from rules.read_statement_page(1, 1, '2026-01-01', 'summary', $1, $2) with ordinality s (number, fields, place)
         order by s.place`,
        [after, limit],
      );
      const wanted = Array.from({ length: Math.min(limit, lines - after) }, (_, index) => after + 1 + index);
      t.strictSame(
        page.map(({ number, count }) => [number, count]),
        wanted.map((number) => [number, String(10 * number)]),
        `${limit} lines after ${after}`,
      );
    }
});

// The lines of a detail file, as the database sends them page by page. Several pages of postings are on the day.
import t from "tap";
import { openSession } from "../../src/database/connect.ts";
import { redeemWhole } from "../support/ledger.ts";
import { startService } from "../support/service.ts";

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

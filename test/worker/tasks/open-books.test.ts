// The first business day of a distributor while the clock is ahead, or was.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import { keepBusinessDays, manyDistributors, openBooks } from "../../support/business-days.ts";
import { startService } from "../../support/service.ts";

t.test("a new book begins after days that were closed while the clock was ahead", async (t) => {
  const { tenant, parties } = manyDistributors(2);
  const [first, second] = parties as [string, string];
  const service = await startService(t, { tenants: [tenant] }, { mayBreakInvariants: true });
  const books = await keepBusinessDays(t, service);
  await openBooks(service, [first], 1);
  await books.sequence();
  const psql = openSession(service.address, { name: "psql" });
  t.teardown(() => psql.end());
  await psql.run(`
    set session_replication_role = replica;
    insert into core.statement (tenant_id, distributor_id, business_date, entry_count, is_one_of_several, closed_at)
    select tenant_id, party_id, '2097-12-31', 0, false, now() from core.ledger_book;
    update core.ledger_book set open_on = '2098-01-01'`);
  await openBooks(service, [second], 1);
  await books.sequence();
  t.strictSame(
    [
      ...(await service.owner.rows(
        `select p.external_id as party, b.open_on::text
         from core.ledger_book b join core.party p using (tenant_id, party_id) order by 1`,
      )),
    ],
    [
      { party: first, open_on: "2098-01-01" },
      { party: second, open_on: "2098-01-01" },
    ],
  );
});

t.test("a new book begins today although its first event was written while the clock was ahead", async (t) => {
  const { tenant, parties } = manyDistributors(1);
  const service = await startService(t, { tenants: [tenant] }, { mayBreakInvariants: true });
  const books = await keepBusinessDays(t, service);
  await openBooks(service, parties, 1);
  const psql = openSession(service.address, { name: "psql" });
  t.teardown(() => psql.end());
  await psql.run(`
    set session_replication_role = replica;
    update core.event set recorded_at = recorded_at + interval '30 days'`);
  await books.sequence();
  const [book] = await service.owner.rows<{ is_open: boolean }>(
    "select open_on - (now() at time zone 'UTC')::date between -1 and 1 as is_open from core.ledger_book",
  );
  t.strictSame({ ...book }, { is_open: true });
});

// Keys and references of the tables: no row exists twice, and each column that names another row is protected, by a
// foreign key or by a trigger.
import t from "tap";
import type { Session } from "../../src/database/types.ts";
import { attempt } from "../support/attempt.ts";
import { fillEveryTable } from "../support/every-table.ts";
import { insertCopy } from "./attempts/statements.ts";
import { fits } from "../support/fits.ts";

let session: Session;
t.before(async () => {
  ({ session } = await fillEveryTable(t));
});

t.test("No row can exist twice", async (t) => {
  const tables = await session.rows<{ name: string }>(
    "select relname as name from pg_class where relnamespace = 'core'::regnamespace and relkind = 'r' order by 1",
  );
  for (const { name } of tables) {
    const again = `insert into core.${name} overriding system value select * from core.${name} limit 1`;
    t.equal((await attempt(session, again))?.sqlState, "23505", name);
  }
});

t.test("Every foreign key refuses a row that does not exist", async (t) => {
  // For these another rule fires first; tables.test.ts attempts them with the rows that they need.
  const exceptions = ["credential_tenant_id_fkey", "test_delivery_tenant_id_party_id_fkey"];
  const references = await session.rows<{ name: string; table: string; columns: string[] }>(
    `select c.conname as name, r.relname as table,
       array(select a.attname from unnest(c.conkey) k join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k
             where cardinality(c.conkey) = 1 or a.attname <> 'tenant_id')::text[] as columns
     from pg_constraint c join pg_class r on r.oid = c.conrelid
     where c.contype = 'f' and c.connamespace = 'core'::regnamespace and c.conname <> all ($1) order by 1`,
    [exceptions],
  );
  t.ok(references.length > 30);
  for (const { name, table, columns } of references) {
    const where = columns.map((column) => `${column} is not null`).join(" and ");
    const refusal = await attempt(session, insertCopy(table, where, await dangling(table, columns)));
    fits(t, refusal, { sqlState: "23503", rule: name }, name);
  }
});

// New values for the columns of a reference, and for the columns that make a copied row distinct.
async function dangling(table: string, columns: string[]): Promise<Record<string, string>> {
  const changed = await session.rows<{ column: string; type: string }>(
    `select a.attname as column, a.atttypid::regtype::text as type from pg_attribute a
     where a.attrelid = ('core.' || $1)::regclass and a.attnum > 0
       and (a.attname = any ($2)
            or exists (
              select from pg_index i
              where i.indrelid = a.attrelid and i.indisunique and i.indpred is null
                and a.attnum = (
                  select n.attnum from unnest(i.indkey) with ordinality k (attnum, place)
                  join pg_attribute n on n.attrelid = i.indrelid and n.attnum = k.attnum
                  where n.attname <> 'tenant_id' order by k.place desc limit 1)))`,
    [table, columns],
  );
  const unknown: Record<string, (column: string) => string> = {
    uuid: () => "'11111111-1111-7111-8111-111111111111'",
    text: (column) => (column === "currency" ? "'QQQ'" : `(o.x).${column} || 'z'`),
    date: () => "'2020-01-01'",
    "core.finite_time": () => "'2020-01-01'",
  };
  return Object.fromEntries(
    changed.map(({ column, type }) => [column, (unknown[type] ?? (() => "2147483647"))(column)]),
  );
}

// The columns that name a row of another table.
const nouns = `tenant party merchant store template batch coupon redemption reversal event entry credential maker
  distributor`.split(/\s+/);
const naming = [...nouns.map((noun) => `${noun}_id`), "currency"];

t.test("Every column that names another row has a foreign key, apart from the listed ones", async (t) => {
  const loose = await session.rows<{ name: string }>(
    `select c.relname || '.' || a.attname as name
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'core'::regnamespace and c.relkind = 'r' and a.attidentity = ''
       and a.attname <> c.relname and a.attname <> c.relname || '_id'
       and a.attname = any ($1)
       and not exists (
         select from pg_constraint k where k.conrelid = c.oid and k.contype = 'f' and a.attnum = any (k.conkey))`,
    [naming],
  );
  t.strictSame(
    loose.map(({ name }) => name).sort(),
    [
      // A log that outlives its events, and nonces, which are deleted after minutes.
      "delivery_attempt.event_id",
      "delivery_attempt.party_id",
      "delivery_attempt.tenant_id",
      "nonce.credential_id",
      "nonce.tenant_id",
      // A test event is in no other table.
      "test_delivery.event_id",
      // 0 in Variant A.
      "feed.party_id",
      // Copies, for the hot path, of values that are fixed in the batch and its template. report.invariants compares
      // them.
      "ledger_entry.currency",
      "redemption.currency",
      // Triggers check these once per statement. A foreign key would query for each row and lock the row it refers to.
      "event.batch_id",
      "event.coupon_id",
      "event.party_id",
      "event.tenant_id",
      "ledger_entry.coupon_id",
      "ledger_entry.distributor_id",
      "ledger_entry.entry_id",
      "ledger_entry.tenant_id",
      "delivery.event_id",
      "coupon.batch_id",
      "coupon.tenant_id",
      "feed_page.party_id",
      "feed_page.tenant_id",
      "posting_page.distributor_id",
      "posting_page.tenant_id",
      "redemption.coupon_id",
      "redemption.merchant_id",
      "redemption.tenant_id",
      "voiding.merchant_id",
      // Written by its own caller's call, and deleted after 90 days.
      "request.tenant_id",
    ].sort(),
  );
});

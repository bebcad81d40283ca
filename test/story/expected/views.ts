// Compares each row and column of a view with what the books say. Times must be in the window of their step.
import type { Test } from "tap";
import { openSession } from "../../../src/database/connect.ts";
import type { Session } from "../../../src/database/types.ts";
import type { Cell, Expected, Row } from "../books.ts";
import type { Story } from "../story.ts";
import { expectCoupons } from "./coupons.ts";
import { expectEvents } from "./events.ts";
import { expectLedger } from "./ledger.ts";
import { expectProvisioned } from "./provisioned.ts";

type Column = { name: string; type: string };

export const expectAll = (story: Story): Expected => ({
  ...expectProvisioned(story),
  ...expectCoupons(story),
  ...expectLedger(story),
  ...expectEvents(story),
});

// What identifies a row, where the first columns of text and the key of the view's comment do not.
const keys: Record<string, string[]> = {
  tenant: ["tenant"],
  batch: ["batch"],
  coupon: ["coupon"],
  redemption: ["redemption"],
  voiding: ["coupon"],
  credential: ["access_key"],
  master_key: ["version"],
  party: ["tenant", "party"],
  merchant: ["tenant", "merchant"],
  template: ["tenant", "template"],
  ledger: ["entry"],
  posting: ["entry"],
  maker_balance: ["entry"],
  merchant_balance: ["entry"],
  distributor_balance: ["entry"],
  statement: ["tenant", "distributor", "business_date"],
  statement_line: ["tenant", "distributor", "business_date", "number"],
  event: ["event"],
  delivery: ["event"],
  delivery_attempt: ["attempt_id"],
  webhook_health: ["tenant", "party"],
  request: ["request_id"],
  audit: ["audit_id"],
  invariants: [],
  stuck_work: [],
};

/** The views of the catalog. A report reader reads them. */
export async function openReader(t: Test, { service }: Story) {
  const session = openSession(service.address, { name: "coupon test reader", role: "coupon_report" });
  t.teardown(() => session.end());
  // No index, because an index would return lists in order.
  await session.run(
    "set time zone 'UTC'; set enable_indexscan = off; set enable_indexonlyscan = off; set enable_bitmapscan = off",
  );
  const rows = await session.rows<Column & { view: string }>(
    `select c.relname::text as view, a.attname::text as name, a.atttypid::regtype::text as type
     from pg_class c
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
     where c.relnamespace = 'report'::regnamespace and c.relkind = 'v'
     order by c.relname, a.attnum`,
  );
  return { session, views: Map.groupBy(rows, ({ view }) => view) };
}

export async function compareView(
  t: Test,
  session: Session,
  view: string,
  columns: Column[],
  expected: Row[],
): Promise<void> {
  const shown = columns.map(({ name, type }) =>
    type === "timestamp with time zone" ? `extract(epoch from ${name})::text as ${name}` : `${name}::text`,
  );
  const actual = await session.rows<Record<string, string | null>>(`select ${shown.join(", ")} from report.${view}`);
  const nameOf = (row: Row) => keys[view]!.map((column) => row[column]).join(" ");
  const byName = new Map(expected.map((row) => [nameOf(row), row]));
  const order = (rows: Row[]) => rows.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
  const seen = actual.map((row) => {
    const wanted = byName.get(nameOf(row));
    return Object.fromEntries(
      Object.entries(row).map(([name, cell]) => [name, readCell(cell, wanted?.[name] ?? null)]),
    );
  });
  t.strictSame(order(seen).map(sorted), order(expected).map(sorted), `report.${view}`);
}

// A time in its window reads as that window, another one as the number that it is.
function readCell(cell: string | null, wanted: Cell): Cell {
  if (cell === null || wanted === null || typeof wanted === "string") return cell;
  const seconds = Number(cell);
  // The clock is read in microseconds.
  return seconds >= wanted.from - 1e-6 && seconds <= wanted.to + 1e-6 ? wanted : `${cell}: not in its window`;
}

const sorted = (row: Row): Row => Object.fromEntries(Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1)));

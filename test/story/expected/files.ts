// The files of finished statements, line by line. Their amounts are major units, whatever unit the tenant uses.
import type { Test } from "tap";
import { readCsv } from "../../support/csv.ts";
import type { Cell, Row, Statement } from "../books.ts";
import { showPosting, summarize } from "./ledger.ts";

// Names of columns in the file, by those of the reports.
const detailNames = {
  business_date: "business_date",
  entry: "entry_id",
  entry_type: "entry_type",
  redemption: "redemption_id",
  reversal: "reversal_id",
  coupon: "coupon_id",
  batch: "batch_id",
  template: "template_id",
  merchant: "merchant_id",
  store: "store",
  terminal: "terminal",
  order_id: "order_id",
  order_amount: "order_amount",
  discount_amount: "discount_amount",
  currency: "currency",
  occurred_at: "occurred_at",
  recorded_at: "recorded_at",
  distributor: "distributor_id",
};
const summaryNames = {
  business_date: "business_date",
  merchant: "merchant_id",
  template: "template_id",
  currency: "currency",
  redemption_count: "redemption_count",
  redemption_amount: "redemption_amount",
  reversal_count: "reversal_count",
  reversal_amount: "reversal_amount",
  net_amount: "net_amount",
  distributor: "distributor_id",
};

export function compareFiles(t: Test, statement: Statement): void {
  const { tenant, distributor, date, entries, files } = statement;
  const entriesInOrder = entries.toSorted((one, other) => one.number! - other.number!);
  const name = `${tenant.id} ${distributor} ${date}`;
  compare(t, `detail of ${name}`, files!.detail.text, entriesInOrder.map(showPosting), detailNames);
  compare(t, `summary of ${name}`, files!.summary.text, summarize(statement), summaryNames);
}

function compare(t: Test, name: string, text: string, rows: Row[], names: Record<string, string>): void {
  const lines = readCsv(text);
  const expected = rows.map((row) =>
    Object.fromEntries(Object.entries(names).map(([column, shown]) => [shown, row[column] ?? ""])),
  );
  const seen = lines.map((line, index) =>
    Object.fromEntries(
      Object.entries(line).map(([column, field]) => [column, readField(field, expected[index]?.[column] ?? "")]),
    ),
  );
  t.strictSame(seen, expected, name);
}

// Files show milliseconds.
function readField(field: string, wanted: Cell): Cell {
  if (wanted === null || typeof wanted === "string") return field;
  const seconds = Date.parse(field) / 1_000;
  return seconds >= wanted.from - 0.001 && seconds <= wanted.to + 0.001 ? wanted : field;
}

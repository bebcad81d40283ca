// The ledger, its balances, business days and statements.
import { major, sameKey, uuidOf, type Entry, type Row, type Statement, type Expected } from "../books.ts";
import type { Story } from "../story.ts";

export function expectLedger({ books }: Story): Expected {
  const { entries, statements } = books;
  return {
    ledger: entries.map(showEntry),
    posting: entries.filter(({ date }) => date !== null).map(showPosting),
    maker_balance: showBalances(entries, "maker", () => "pty_one"),
    merchant_balance: showBalances(entries, "merchant", ({ redemption }) => redemption.merchant),
    distributor_balance: showBalances(entries, "distributor", ({ redemption }) => redemption.coupon.batch.distributor),
    statement: statements.map(showStatement),
    statement_line: statements.filter(({ readyAt }) => readyAt !== null).flatMap(summarize),
  };
}

function showEntry({ redemption, id, type, minor, occurredAt, recordedAt }: Entry): Row {
  const { coupon, orderMinor } = redemption;
  const { tenant, currency, ...batch } = coupon.batch;
  const entry = sameKey("led", id);
  return {
    tenant: tenant.id,
    entry,
    entry_type: type,
    redemption: redemption.id,
    reversal: type === "REVERSAL" ? id : null,
    coupon: coupon.id,
    batch: batch.id,
    template: batch.template,
    merchant: redemption.merchant,
    distributor: batch.distributor,
    store: redemption.store,
    terminal: redemption.terminal,
    order_id: redemption.orderId,
    order_amount: orderMinor === null ? null : major(orderMinor, currency),
    discount_amount: major(minor, currency),
    currency,
    occurred_at: occurredAt,
    recorded_at: recordedAt,
    tenant_id: String(tenant.number),
    entry_key: uuidOf(entry),
    maker: "pty_one",
    redemption_key: uuidOf(redemption.id),
    coupon_key: uuidOf(coupon.id),
  };
}

/** With the columns of a statement's detail file. */
export function showPosting(entry: Entry): Row {
  const { maker: _, redemption_key: __, coupon_key: ___, ...shown } = showEntry(entry);
  return { ...shown, business_date: entry.date, number: String(entry.number) };
}

// The entries are in the order in which they were recorded.
function showBalances(entries: Entry[], column: string, ownerOf: (entry: Entry) => string): Row[] {
  const sums = new Map<string, number>();
  return entries.map((entry) => {
    const { tenant, currency } = entry.redemption.coupon.batch;
    const key = `${tenant.id} ${ownerOf(entry)} ${currency}`;
    const sum = (sums.get(key) ?? 0) + entry.minor;
    sums.set(key, sum);
    return {
      tenant: tenant.id,
      [column]: ownerOf(entry),
      currency,
      recorded_at: entry.recordedAt,
      entry: sameKey("led", entry.id),
      entry_type: entry.type,
      amount: major(entry.minor, currency),
      balance: major(sum, currency),
    };
  });
}

function showStatement(statement: Statement): Row {
  const { files } = statement;
  return {
    tenant: statement.tenant.id,
    distributor: statement.distributor,
    business_date: statement.date,
    closed_at: statement.closedAt,
    ready_at: statement.readyAt,
    entry_count: String(statement.entries.length),
    detail_bytes: files && String(files.detail.bytes),
    detail_sha256: files && files.detail.sha256,
    summary_rows: files && String(summarize(statement).length),
    summary_bytes: files && String(files.summary.bytes),
    summary_sha256: files && files.summary.sha256,
    is_one_of_several: String(statement.isOneOfSeveral),
  };
}

/** Lines are ordered by merchant, template and currency. */
export function summarize({ tenant, distributor, date, entries }: Statement): Row[] {
  const groups = Map.groupBy(entries, ({ redemption: { merchant, coupon } }) =>
    [merchant, coupon.batch.template, coupon.batch.currency].join(" "),
  );
  return [...groups.keys()].toSorted().map((key, index) => {
    const [merchant, template, currency] = key.split(" ") as [string, string, string];
    const of = (type: Entry["type"]) => groups.get(key)!.filter((entry) => entry.type === type);
    const sum = (some: Entry[]) => some.reduce((total, { minor }) => total + minor, 0);
    const [redemptions, reversals] = [of("REDEMPTION"), of("REVERSAL")];
    return {
      tenant: tenant.id,
      distributor,
      business_date: date,
      number: String(index + 1),
      merchant,
      template,
      currency,
      redemption_count: String(redemptions.length),
      redemption_amount: major(sum(redemptions), currency),
      reversal_count: String(reversals.length),
      reversal_amount: major(sum(reversals), currency),
      net_amount: major(sum(redemptions) + sum(reversals), currency),
    };
  });
}

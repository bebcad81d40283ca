// The questions that people ask the reports, over the data of report-data.ts. A test counts the rows that each reads;
// `npm run bench -- reports` measures their times.

export type Question = {
  name: string;
  // {coupon}, {redemption}, {entry}, {event} stand for external IDs, {day} for a day in the middle.
  sql: string;
  // What the answer is about, if not its own rows: a query that counts them.
  about?: string;
  // Rows that are read besides: the plan takes a range of blocks, or a side that has to be read whole.
  besides?: number;
  // Only with statistics: without them, PostgreSQL knows neither the share of a tenant nor the order of a BRIN index.
  needsStatistics?: boolean;
};

const ofDay = "recorded_at >= '{day}' and recorded_at < date '{day}' + 1";
const ofMerchant = "(select count(*) from report.redemption where merchant = 'mch_7')";
const ofMonth = "distributor = 'pty_north' and business_date between date '{day}' - 14 and date '{day}' + 15";

export const questions: Question[] = [
  { name: "ledger: newest 100", sql: "select * from report.ledger order by recorded_at desc limit 100" },
  {
    name: "ledger: newest 100 of a tenant",
    sql: "select * from report.ledger where tenant = 'ten_big' order by recorded_at desc limit 100",
  },
  {
    name: "ledger: the last 24 hours",
    sql: "select * from report.ledger where recorded_at >= now() - interval '1 day'",
  },
  { name: "ledger: a day", sql: `select * from report.ledger where ${ofDay}` },
  { name: "ledger: a day of a tenant", sql: `select * from report.ledger where tenant = 'ten_big' and ${ofDay}` },
  { name: "ledger: a merchant", sql: "select * from report.ledger where merchant = 'mch_7'" },
  {
    name: "ledger: a merchant's day",
    sql: `select * from report.ledger where merchant = 'mch_7' and ${ofDay}`,
    about: `select ${ofMerchant}`,
  },
  {
    name: "ledger: newest 20 of a merchant",
    sql: "select * from report.ledger where merchant = 'mch_7' order by recorded_at desc limit 20",
    about: `select ${ofMerchant}`,
  },
  { name: "ledger: an order", sql: "select * from report.ledger where order_id = 'order-777'" },
  { name: "ledger: a coupon", sql: "select * from report.find_ledger('{coupon}')" },
  { name: "ledger: a redemption", sql: "select * from report.find_ledger('{redemption}')" },
  { name: "ledger: an entry", sql: "select * from report.find_ledger('{entry}')" },
  {
    name: "redemption: newest 100",
    sql: "select * from report.redemption order by redemption_key desc limit 100",
  },
  {
    name: "redemption: newest 100 of a tenant",
    sql: "select * from report.redemption where tenant = 'ten_big' order by redemption_key desc limit 100",
    needsStatistics: true,
  },
  {
    name: "redemption: a day",
    sql: `select * from report.redemption
          where redemption_key >= report.make_key('{day}') and redemption_key < report.make_key(date '{day}' + 1)`,
  },
  { name: "redemption: a merchant", sql: "select * from report.redemption where merchant = 'mch_7'" },
  {
    name: "redemption: newest 20 of a merchant",
    sql: "select * from report.redemption where merchant = 'mch_7' order by started_at desc limit 20",
    about: `select ${ofMerchant}`,
  },
  { name: "redemption: an order", sql: "select * from report.redemption where order_id = 'order-777'" },
  { name: "redemption: open locks", sql: "select * from report.redemption where stored_status = 'LOCKED'" },
  { name: "redemption: a coupon", sql: "select * from report.find_redemption('{coupon}')" },
  { name: "redemption: by ID", sql: "select * from report.find_redemption('{redemption}')" },
  { name: "coupon: by ID", sql: "select * from report.find_coupon('{coupon}')" },
  { name: "coupon: a number of a batch", sql: "select * from report.coupon where batch = 'bat_0' and number = 17" },
  {
    name: "coupon: a batch by status",
    sql: "select status, count(*) from report.coupon where batch = 'bat_0' group by status",
    about: "select total_count from report.batch where batch = 'bat_0'",
  },
  {
    name: "coupon: the redeemed ones of a batch",
    sql: "select * from report.coupon where batch = 'bat_7' and status = 'REDEEMED'",
    about: "select total_count from report.batch where batch = 'bat_7'",
  },
  { name: "event: newest 100", sql: "select * from report.event order by event_seq desc limit 100" },
  { name: "event: a coupon", sql: "select * from report.find_event('{coupon}')" },
  { name: "event: by ID", sql: "select * from report.find_event('{event}')" },
  { name: "request: a request_id", sql: "select * from report.request where request_id = 'req-777'" },
  {
    name: "request: the newest 20 of an hour",
    sql: `select * from report.request where recorded_at >= now() - interval '1 hour'
          order by recorded_at desc limit 20`,
    // The newest blocks have no summary until autovacuum writes it.
    besides: 6_000,
    needsStatistics: true,
  },
  { name: "voiding: newest 20", sql: "select * from report.voiding order by voided_at desc limit 20" },
  { name: "posting: a distributor's month", sql: `select * from report.posting where ${ofMonth}` },
  {
    name: "posting: an entry",
    sql: "select * from report.find_posting('{entry}')",
    // It reads the business days of the entry and of its reversal.
    about: `select sum(entry_count) from report.statement
            where (distributor, business_date) in (
              select p.distributor, p.business_date from report.find_posting('{entry}') p)`,
  },
  { name: "statement: a distributor's month", sql: `select * from report.statement where ${ofMonth}` },
  {
    name: "statement: a distributor's month by merchant",
    sql: `select merchant, currency, sum(net_amount) from report.statement_line where ${ofMonth} group by 1, 2`,
    about: `select count(*) from report.statement_line where ${ofMonth}`,
  },
  {
    name: "balance: a merchant",
    sql: "select * from report.merchant_balance where merchant = 'mch_7' order by recorded_at desc, entry desc limit 1",
    about: `select ${ofMerchant}`,
  },
  {
    name: "balance: all merchants, up to the last closed day",
    sql: "select merchant, currency, sum(net_amount) from report.statement_line group by 1, 2",
    about: "select count(*) from report.statement_line",
  },
];

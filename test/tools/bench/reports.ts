// reports: the times of the questions that people ask the reports, about a full database, before its large tables are
// analyzed and after. test/db/plans.test.ts counts the rows that each question reads.
import { readFileSync } from "node:fs";
import path from "node:path";
import { openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import { createDatabase, settle, type Run } from "./environment.ts";
import { median, type Row } from "./measure.ts";
import { fillReports } from "./report-data.ts";

export type Question = {
  // {coupon}, {redemption}, {entry}, {event} stand for external IDs, {day} for a day in the middle.
  sql: string;
  // What the answer is about, if not its own rows: a query that counts them.
  about?: string;
  // Rows that are read besides: the plan takes a range of blocks, or a side that has to be read whole.
  besides?: number;
  // Only with statistics: without them, PostgreSQL knows neither the share of a tenant nor the order of a BRIN index.
  needsStatistics?: boolean;
};

const docs = path.join(import.meta.dirname, "../../../docs");
const readyQuestion = (name: string): string =>
  readFileSync(path.join(docs, `reports/${name}.sql`), "utf8")
    .replaceAll(/^ *--.*\n/gm, "")
    .trim()
    .replace(/;$/, "");
const startedSince = (days: number): string =>
  `select count(*) from report.redemption where redemption_key >= report.make_key(current_date - ${days})`;

const ofDay = "recorded_at >= '{day}' and recorded_at < date '{day}' + 1";
const ofMerchant = "select count(*) from report.redemption where merchant = 'mch_7'";
const ofMonth = "distributor = 'pty_north' and business_date between date '{day}' - 14 and date '{day}' + 15";

export const questions: Question[] = [
  { sql: "select * from report.ledger order by recorded_at desc limit 100" },
  { sql: "select * from report.ledger where tenant = 'ten_big' order by recorded_at desc limit 100" },
  { sql: "select * from report.ledger where recorded_at >= now() - interval '1 day'" },
  { sql: `select * from report.ledger where ${ofDay}` },
  { sql: `select * from report.ledger where tenant = 'ten_big' and ${ofDay}` },
  { sql: "select * from report.ledger where merchant = 'mch_7'" },
  { sql: `select * from report.ledger where merchant = 'mch_7' and ${ofDay}`, about: ofMerchant },
  { sql: "select * from report.ledger where merchant = 'mch_7' order by recorded_at desc limit 20", about: ofMerchant },
  { sql: "select * from report.ledger where order_id = 'order-777'" },
  { sql: "select * from report.find_ledger('{coupon}')" },
  { sql: "select * from report.find_ledger('{redemption}')" },
  { sql: "select * from report.find_ledger('{entry}')" },
  { sql: "select * from report.redemption order by redemption_key desc limit 100" },
  {
    sql: "select * from report.redemption where tenant = 'ten_big' order by redemption_key desc limit 100",
    needsStatistics: true,
  },
  {
    sql: `select * from report.redemption
          where redemption_key >= report.make_key('{day}') and redemption_key < report.make_key(date '{day}' + 1)`,
  },
  { sql: "select * from report.redemption where merchant = 'mch_7'" },
  {
    sql: "select * from report.redemption where merchant = 'mch_7' order by started_at desc limit 20",
    about: ofMerchant,
  },
  { sql: "select * from report.redemption where order_id = 'order-777'" },
  { sql: "select * from report.redemption where stored_status = 'LOCKED'" },
  { sql: "select * from report.find_redemption('{coupon}')" },
  { sql: "select * from report.find_redemption('{redemption}')" },
  { sql: "select * from report.find_coupon('{coupon}')" },
  { sql: "select * from report.coupon where batch = 'bat_0' and number = 17" },
  {
    sql: "select status, count(*) from report.coupon where batch = 'bat_0' group by status",
    about: "select total_count from report.batch where batch = 'bat_0'",
  },
  {
    sql: "select * from report.coupon where batch = 'bat_7' and status = 'REDEEMED'",
    about: "select total_count from report.batch where batch = 'bat_7'",
  },
  { sql: "select * from report.event order by event_seq desc limit 100" },
  { sql: "select * from report.find_event('{coupon}')" },
  { sql: "select * from report.find_event('{event}')" },
  { sql: "select * from report.request where request_id = 'req-777'" },
  {
    sql: `select * from report.request where recorded_at >= now() - interval '1 hour'
          order by recorded_at desc limit 20`,
    // The newest blocks have no summary until autovacuum writes it.
    besides: 1_000,
    needsStatistics: true,
  },
  { sql: "select * from report.voiding order by voided_at desc limit 20" },
  { sql: `select * from report.posting where ${ofMonth}` },
  {
    sql: "select * from report.find_posting('{entry}')",
    // It reads the business days of the entry and of its reversal, and the days before.
    about: `select sum(entry_count) from report.statement
            where (distributor, business_date) in (
              select p.distributor, p.business_date - x
              from report.find_posting('{entry}') p, generate_series(0, 1) x)`,
  },
  { sql: `select * from report.statement where ${ofMonth}` },
  {
    sql: `select merchant, currency, sum(net_amount) from report.statement_line where ${ofMonth} group by 1, 2`,
    about: `select count(*) from report.statement_line where ${ofMonth}`,
  },
  { sql: readyQuestion("abandoned-locks"), about: startedSince(30) },
  { sql: readyQuestion("refusals"), about: startedSince(30) },
  { sql: readyQuestion("time-to-redemption"), about: startedSince(7) },
  { sql: readyQuestion("top-templates"), about: startedSince(7) },
  {
    sql: readyQuestion("webhook-delivery"),
    about: "select count(*) from report.delivery_attempt where attempted_at >= current_date - 7",
  },
  {
    sql: readyQuestion("reconciliation"),
    about: "select sum(entry_count) from report.statement where business_date >= current_date - 2",
    // The statements of all days, of which there are few.
    besides: 300,
  },
];

const document = readFileSync(path.join(docs, "database.md"), "utf8");
const [, tenQuestions] = /^### Ten questions[^]*?```sql\n([^]*?)```/m.exec(document)!;

/** The ten questions of docs/database.md, some of docs/reports and others: they read no entry of a closed day. */
export const wideQuestions = [
  ...tenQuestions!
    .replaceAll(/^--.*$/gm, "")
    .trim()
    .replace(/;$/, "")
    .split(";\n"),
  ...["balances", "discount-by-merchant", "reversals", "use-of-batches"].map(readyQuestion),
  "select * from report.maker_balance",
  "select * from report.distributor_balance",
  "select * from report.merchant_balance where merchant = 'mch_7'",
  "select * from report.batch where batch = 'bat_0'",
  "select template, sum(liability_amount) from report.batch group by 1",
];

/** The size is the number of coupons; a fifth of them are redeemed. */
export async function benchReports({ server, size, rounds }: Run): Promise<Row[]> {
  const { address, drop } = await createDatabase(server);
  const reader = openSession(address, { name: "coupon bench reader", role: "coupon_report" });
  try {
    await fillReports(address, size);
    const examples = await readExamples(reader);
    const all: Question[] = [...questions, ...wideQuestions.map((sql) => ({ sql }))];
    const rows = all.map(({ sql }): Row => ({ name: sql.replaceAll(/\s+/g, " ") }));
    for (const column of ["never analyzed, ms", "analyzed, ms"]) {
      if (column === "analyzed, ms") await settle({ address });
      for (const [index, question] of all.entries()) {
        const times: number[] = [];
        for (let round = 0; round < rounds; round += 1) times.push((await readQuestion(reader, question, examples)).ms);
        rows[index]![column] = median(times);
      }
    }
    return rows;
  } finally {
    await reader.end();
    await drop();
  }
}

// Small tables (tenants, parties, merchants, templates, batches, currencies) may be read whole.
const growing = new Set(
  `coupon redemption reversal voiding event ledger_entry posting_page statement statement_line request
   delivery_attempt`.split(/\s+/),
);

type Node = {
  "Node Type": string;
  "Relation Name"?: string;
  "Actual Rows": number;
  "Actual Loops": number;
  "Rows Removed by Filter"?: number;
  "Rows Removed by Index Recheck"?: number;
  Plans?: Node[];
};
export type Reading = { answer: number; read: number; about: number; ms: number; scans: string[] };

// The IDs and the day that the questions are about. On that day, about 30 days ago, mch_7 has an entry.
export async function readExamples(database: Database): Promise<Record<string, string>> {
  const [row] = await database.rows<Record<string, string>>(
    `select l.coupon, l.redemption, l.entry, replace(l.entry, 'led_', 'evt_') as event,
            (select max(m.recorded_at)::date::text from report.ledger m
             where m.merchant = 'mch_7' and m.recorded_at < now() - interval '30 days') as day
     from report.redemption r
     cross join lateral report.find_ledger(r.redemption) l
     where r.order_id = 'order-702' and l.entry_type = 'REVERSAL'`,
  );
  return { ...row! };
}

const fillIn = (text: string, examples: Record<string, string>): string =>
  text.replace(/\{(\w+)\}/g, (_, name: string) => examples[name]!);

export async function readQuestion(
  database: Database,
  { sql, about }: Question,
  examples: Record<string, string>,
): Promise<Reading> {
  const [row] = await database.rows<{
    "QUERY PLAN": [{ Plan: Node; "Planning Time": number; "Execution Time": number }];
  }>(`explain (analyze, format json) ${fillIn(sql, examples)}`);
  const [{ Plan: plan, ...times }] = row!["QUERY PLAN"];
  const answer = Math.round(plan["Actual Rows"] * plan["Actual Loops"]);
  const counted = about === undefined ? [] : await database.rows<Record<string, string>>(fillIn(about, examples));
  const scans = listScans(plan).filter(({ table }) => growing.has(table));
  return {
    answer,
    about: counted.length === 0 ? answer : Number(Object.values(counted[0]!)[0]),
    read: scans.reduce((sum, { rows }) => sum + rows, 0),
    ms: times["Planning Time"] + times["Execution Time"],
    scans: scans.map(({ table, type, rows }) => `${type} ${table}: ${rows}`),
  };
}

function listScans(node: Node): { table: string; type: string; rows: number }[] {
  const table = node["Relation Name"];
  const rows =
    (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0)) *
    node["Actual Loops"];
  return [
    ...(table === undefined ? [] : [{ table, type: node["Node Type"], rows: Math.round(rows) }]),
    ...(node.Plans ?? []).flatMap(listScans),
  ];
}

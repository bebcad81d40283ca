// How much a question reads: rows of the tables that grow with use. Small tables (tenants, parties, merchants,
// templates, batches, currencies) may be read whole.
import type { Database } from "../../src/database/types.ts";
import type { Question } from "./report-questions.ts";

const growing = [
  "coupon",
  "redemption",
  "reversal",
  "voiding",
  "event",
  "ledger_entry",
  "posting_page",
  "statement",
  "statement_line",
  "request",
];

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
  const scans = listScans(plan).filter(({ table }) => growing.includes(table));
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

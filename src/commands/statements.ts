// coupon statements: list shows which days are closed. verify renders the files of every ready statement again: detail
// from the ledger, and summary from its stored lines. It compares rows, bytes and sha256 with the stored values, and
// each summary with the sum of its details. It prints the differences.
import { defineCommand, groupCommands } from "../command-line/command.ts";
import { readConfig } from "../config/config.ts";
import { writeOutput } from "../command-line/output.ts";
import { databaseSettings } from "../config/settings.ts";
import { columns, measureFile, type Kind, type Line, type Measure } from "../formats/statement-csv.ts";
import type { Database } from "../database/types.ts";
import { findAddress } from "../embedded/find-address.ts";
import { withAdminDatabase } from "./admin-database.ts";
import { toCellOf, type Route } from "./find-cell.ts";
import { formatJson, formatRows, json } from "./table.ts";

const statementsPerPage = 100;

type Row = {
  tenant_id: number;
  distributor_id: number;
  business_date: string;
  tenant: string;
  distributor: string;
  detail_rows: number;
  detail_bytes: string;
  detail_sha256: string;
  summary_rows: number;
  summary_bytes: string;
  summary_sha256: string;
};
type Sums = Map<string, { redemption: [count: bigint, minor: bigint]; reversal: [count: bigint, minor: bigint] }>;
export type Verdict = { statement: string; differences: string[] };

export async function* verify(database: Database): AsyncGenerator<Verdict> {
  let after: [number, number, string] = [0, 0, "0001-01-01"];
  for (;;) {
    const page = await database.rows<Row>(
      `select tenant_id, distributor_id, business_date::text, tenant, distributor,
              detail_rows, detail_bytes, detail_sha256, summary_rows, summary_bytes, summary_sha256
       from admin.list_statements($1, $2, $3::text::date, $4)`,
      [...after, statementsPerPage],
    );
    for (const row of page)
      yield {
        statement: `${row.tenant} ${row.distributor} ${row.business_date}`,
        differences: await compare(database, row),
      };
    const last = page.at(-1);
    if (last === undefined) return;
    after = [last.tenant_id, last.distributor_id, last.business_date];
  }
}

async function compare(database: Database, row: Row): Promise<string[]> {
  const [ledger, stated]: [Sums, Sums] = [new Map(), new Map()];
  const measure = (kind: Kind, look: (line: Line) => void) =>
    measureFile(kind, async (after, limit) => {
      const lines = await database.rows<Line>(
        "select number, to_json(fields) as fields from rules.read_statement_page($1, $2, $3::text::date, $4, $5, $6)",
        [row.tenant_id, row.distributor_id, row.business_date, kind, after, limit],
      );
      lines.forEach(look);
      return lines;
    });
  const detail = await measure("detail", (line) => addEntry(ledger, line));
  const summary = await measure("summary", (line) => addLine(stated, line));
  return [
    ...differ("detail.csv", detail, {
      rows: row.detail_rows,
      bytes: Number(row.detail_bytes),
      sha256: row.detail_sha256,
    }),
    ...differ("summary.csv", summary, {
      rows: row.summary_rows,
      bytes: Number(row.summary_bytes),
      sha256: row.summary_sha256,
    }),
    ...differSums(ledger, stated),
  ];
}

function differ(file: string, found: Measure, closed: Measure): string[] {
  return (["rows", "bytes", "sha256"] as const)
    .filter((field) => found[field] !== closed[field])
    .map((field) => `${file}: ${field} is ${found[field]}, was ${closed[field]} when it was finished`);
}

function differSums(ledger: Sums, stated: Sums): string[] {
  const differences: string[] = [];
  for (const key of new Set([...ledger.keys(), ...stated.keys()])) {
    const [found, said] = [show(ledger.get(key)), show(stated.get(key))];
    if (found !== said) differences.push(`summary.csv has ${said} for ${key}, the ledger has ${found}`);
  }
  return differences;
}

const show = (sum: { redemption: bigint[]; reversal: bigint[] } | undefined) =>
  sum === undefined
    ? "nothing"
    : `${sum.redemption.join("/")} redeemed and ${sum.reversal.join("/")} reversed (count/minor units)`;

function addEntry(sums: Sums, { fields }: Line): void {
  const field = reader("detail", fields);
  const side = field("entry_type") === "REVERSAL" ? "reversal" : "redemption";
  add(sums, field, side, 1n, toMinor(field("discount_amount")));
}

function addLine(sums: Sums, { fields }: Line): void {
  const field = reader("summary", fields);
  for (const side of ["redemption", "reversal"] as const)
    add(sums, field, side, BigInt(field(`${side}_count`)), toMinor(field(`${side}_amount`)));
}

type Field = (name: string) => string;
function add(sums: Sums, field: Field, side: "redemption" | "reversal", count: bigint, minor: bigint): void {
  const key = `${field("merchant_id")} ${field("template_id")} ${field("currency")}`;
  const sum = sums.get(key) ?? { redemption: [0n, 0n], reversal: [0n, 0n] };
  sum[side] = [sum[side][0] + count, sum[side][1] + minor];
  sums.set(key, sum);
}

function reader(kind: Kind, fields: Line["fields"]): Field {
  return (name) => fields[columns[kind].indexOf(name)] ?? "";
}

// Both files write amounts with the currency's decimals, so the digits are minor units.
const toMinor = (amount: string) => BigInt(amount.replace(".", ""));

const list = defineCommand({
  name: "list",
  about: "Lists the statements of closed business days, newest first. Those without ready_at have no files yet.",
  words: {
    tenant: { about: "only this tenant, ten_…", isOptional: true },
    distributor: { about: "only this distributor of the tenant, pty_…", isOptional: true },
  },
  flags: { limit: { type: "count", value: "N", about: "at most this many rows", default: 100 }, json },
  settings: databaseSettings,
  examples: ["ten_acme --limit 7", "ten_acme pty_maker --json"],
  async run({ words, flags }) {
    const read = (database: Database) =>
      database.rows(
        `select tenant, distributor, business_date::text, closed_at, ready_at, entry_count, detail_bytes::float8,
                summary_rows, summary_bytes::float8
         from report.statement
         where tenant = coalesce($1, tenant) and distributor = coalesce($2, distributor)
         order by business_date desc, tenant, distributor
         limit $3`,
        [words.tenant ?? null, words.distributor ?? null, flags.limit],
      );
    const rows = await withDatabase(read, toCellOf(words.tenant));
    await writeOutput(`${formatRows(rows, flags)}\n`);
  },
});

const verifyCommand = defineCommand({
  name: "verify",
  about:
    "Recomputes every closed statement from the ledger and compares. It prints each difference, and how many " +
    "statements it checked.",
  flags: { json },
  settings: databaseSettings,
  examples: ["", "--json"],
  exitCodes: "0 no differences, 1 differences or failed",
  async run({ flags }) {
    const wrong: Verdict[] = [];
    let checked = 0;
    await withDatabase(async (database) => {
      for await (const verdict of verify(database)) {
        checked += 1;
        if (verdict.differences.length > 0) wrong.push(verdict);
        if (!flags.json)
          for (const difference of verdict.differences) await writeOutput(`${verdict.statement}: ${difference}\n`);
      }
    });
    const found = wrong.length === 0 ? "no differences" : `${wrong.length} differ`;
    const result = flags.json ? formatJson({ checked, wrong }) : `${checked} statements checked, ${found}`;
    await writeOutput(`${result}\n`);
    if (wrong.length > 0) process.exitCode = 1;
  },
});

const withDatabase = <T>(run: (database: Database) => Promise<T>, route?: Route): Promise<T> =>
  withAdminDatabase(findAddress(readConfig()), "coupon statements", run, route);

export const command = groupCommands({
  name: "statements",
  about: "Lists and checks the statements of closed business days.",
  settings: databaseSettings,
  commands: [list, verifyCommand],
});

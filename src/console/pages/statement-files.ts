// The two files of a statement, as the API sends them, and whether they are still what they were on closing.
import { HTTPError, HTTPResponse } from "h3";
import type { Database } from "../../database/types.ts";
import { measureFile, type Kind, type Line } from "../../formats/statement-csv.ts";
import { openDownload } from "../../http/download.ts";
import type { FileParts, Outcome, Values } from "../page.ts";
import { headers } from "../view.ts";

const firstPageWithinMs = 5_000;

type Recorded = { rows: number; bytes: number; sha256: string };

const keysOf = ({ tenant = "", distributor = "", business_date = "" }: Values) => [tenant, distributor, business_date];

const readLines = (reader: FileParts["reader"], values: Values, kind: Kind) => (after: number, limit: number) =>
  reader.rows<Line>(
    "select number, to_json(fields) as fields from console.read_statement_page($1, $2, $3::text::date, $4, $5, $6)",
    [...keysOf(values), kind, after, limit],
  );

/** null: there is no such file, or it is not ready. */
async function findFile(reader: FileParts["reader"], values: Values, kind: Kind): Promise<Recorded | null> {
  const rows = kind === "detail" ? "entry_count" : "summary_rows";
  const [found] = await reader.rows<Recorded>(
    `select ${rows} as rows, ${kind}_bytes::float8 as bytes, ${kind}_sha256 as sha256 from report.statement
     where tenant = $1 and distributor = $2 and business_date = $3::text::date and ready_at is not null`,
    keysOf(values),
  );
  return found ?? null;
}

export async function downloadFile({ reader, log }: FileParts, values: Values, kind: Kind): Promise<HTTPResponse> {
  const recorded = await findFile(reader, values, kind);
  if (recorded === null) throw new HTTPError({ status: 404 });
  const [, distributor, business_date] = keysOf(values) as [string, string, string];
  const read = readLines(reader, values, kind);
  const gate = { statementPage: (_: unknown, after: number, limit: number) => read(after, limit) };
  const { body, headers: ofFile } = await openDownload(
    { gate, log, requestId: "console" },
    { kind, distributor, business_date, ...recorded },
    { ifNoneMatch: undefined, isHead: false, deadline: performance.now() + firstPageWithinMs },
  );
  return new HTTPResponse(body, { headers: { ...ofFile, ...headers } });
}

export async function verifyFiles(own: Database, values: Values): Promise<Outcome> {
  const results: string[] = [];
  let isSame = true;
  for (const kind of ["detail", "summary"] as const) {
    const recorded = await findFile(own, values, kind);
    if (recorded === null) return { error: "The files are not ready yet." };
    const found = await measureFile(kind, readLines(own, values, kind));
    const differences = (["rows", "bytes", "sha256"] as const).filter((field) => found[field] !== recorded[field]);
    isSame &&= differences.length === 0;
    const difference = differences.map((field) => `${field} is ${found[field]}, was ${recorded[field]}`).join(", ");
    results.push(`${kind}.csv ${difference === "" ? "is as it was closed" : `differs: ${difference}`}.`);
  }
  if (!isSame) results.push(await compareTotals(own, values));
  const found = results.join(" ");
  return isSame ? { error: null, found } : { error: found };
}

/** Of the day, by currency: what the ledger has, and what the lines of the summary say. */
async function compareTotals(own: Database, values: Values): Promise<string> {
  const ofDay = "tenant = $1 and distributor = $2 and business_date = $3::text::date";
  const rows = await own.rows<{ total: string }>(
    `select concat_ws(' ', p.currency, 'ledger', p.net, 'summary', l.net, 'difference', l.net - p.net) as total
     from (select currency, sum(discount_amount) as net from report.posting where ${ofDay} group by currency) p
     full join (select currency, sum(net_amount) as net from report.statement_line where ${ofDay} group by currency) l
       using (currency)
     order by total`,
    keysOf(values),
  );
  return `Totals: ${rows.map(({ total }) => total).join(", ")}.`;
}

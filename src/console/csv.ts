// A block as CSV: all of its rows, read page by page.
import { stringify } from "csv-stringify/sync";
import { HTTPResponse } from "h3";
import { escapeFormula } from "../formats/statement-csv.ts";
import type { Reader } from "./doors.ts";
import { readRows, type Asked, type Cell, type Row } from "./query.ts";

const rowsOfPage = 1_000;

/** -5.00 is an amount; what a till sent may be a formula. */
const toText = (cell: Cell): string =>
  cell?.isNumber === true ? cell.text : (escapeFormula(cell?.text ?? null) ?? "");

const format = (rows: readonly Row[], header: boolean): string =>
  stringify(
    rows.map((row) => Object.values(row).map(toText)),
    { header, columns: Object.keys(rows[0] ?? {}) },
  );

export async function writeCsv(reader: Reader, asked: Asked, headers: Record<string, string>): Promise<HTTPResponse> {
  const read = (cursor: string | null) => readRows(reader, asked, { cursor, limit: rowsOfPage });
  // The first page comes before the answer begins: an error then has a status.
  let { rows, next } = await read(null);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(Buffer.from(format(rows, true)));
      if (next === null) controller.close();
    },
    async pull(controller) {
      if (next === null) return;
      ({ rows, next } = await read(next));
      controller.enqueue(Buffer.from(format(rows, false)));
      if (next === null) controller.close();
    },
  });
  const name = asked.block.title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return new HTTPResponse(body, {
    headers: {
      ...headers,
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": `attachment; filename="${name}.csv"`,
    },
  });
}

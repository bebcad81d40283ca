// A block as CSV: all of its rows, read page by page.
import { stringify } from "csv-stringify/sync";
import { HTTPResponse } from "h3";
import type { Reader } from "./doors.ts";
import { readRows, type Asked, type Row } from "./query.ts";

const rowsOfPage = 1_000;

const format = (rows: readonly Row[], header: boolean): string =>
  stringify(
    rows.map((row) => Object.values(row).map((cell) => cell?.text ?? "")),
    { header, columns: Object.keys(rows[0] ?? {}), escape_formulas: true },
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

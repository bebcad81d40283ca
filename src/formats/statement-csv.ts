// The two CSV files of a statement. The worker measures them after the day has closed, the API streams them, and
// `npm run statements -- verify` measures them again. All three use renderFile, so the bytes agree.
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { externalId } from "./id.ts";

export type Kind = "detail" | "summary";
/**
 * The values of a line as the database sends them: IDs are UUIDs, times are microseconds since 1970. They are formatted
 * here, because formatting would take the database longer than everything else on the line.
 */
export type Line = { number: number; fields: (string | null)[] };
/** Returns the lines `after` + 1 to `after` + `limit`, and fewer only at the end of the file. */
export type ReadPage = (after: number, limit: number) => Promise<Line[]>;
export type Piece = { rows: number; bytes: Buffer };
export type Measure = { rows: number; bytes: number; sha256: string };

export const columns: Record<Kind, readonly string[]> = {
  detail: [
    "business_date",
    "entry_id",
    "entry_type",
    "redemption_id",
    "reversal_id",
    "coupon_id",
    "batch_id",
    "template_id",
    "merchant_id",
    "store",
    "terminal",
    "order_id",
    "order_amount",
    "discount_amount",
    "currency",
    "occurred_at",
    "recorded_at",
    "distributor_id",
  ],
  summary: [
    "business_date",
    "merchant_id",
    "template_id",
    "currency",
    "redemption_count",
    "redemption_amount",
    "reversal_count",
    "reversal_amount",
    "net_amount",
    "distributor_id",
  ],
};

const prefixes = { entry_id: "led", redemption_id: "red", reversal_id: "rvs", coupon_id: "cpn" };
const ids = Object.entries(prefixes).map(([name, prefix]) => ({ index: columns.detail.indexOf(name), prefix }));
const times = ["occurred_at", "recorded_at"].map((name) => columns.detail.indexOf(name));
const freeText = ["store", "terminal", "order_id"].map((name) => columns.detail.indexOf(name));
/** About 3 ms of work. In `npm start`, the same thread answers requests. */
// equivalent mutant (literal): the size of a page is tuning
export const linesPerPage = 500;

/**
 * Yields the file in pieces. The first piece starts with the header; it is the whole file on a day without entries. At
 * most two pages are in memory, because the next page is read while one is written.
 */
export async function* renderFile(kind: Kind, readPage: ReadPage): AsyncGenerator<Piece, void, undefined> {
  let text = toRecord(columns[kind]);
  for (let next: Promise<Line[]> | null = readPage(0, linesPerPage); next !== null; text = "") {
    const lines: Line[] = await next;
    next = lines.length < linesPerPage ? null : readPage(lines.at(-1)!.number, linesPerPage);
    // If this read fails, the loop throws its error when it awaits the read.
    next?.catch(() => {});
    // The driver needs two turns of the event loop to send that query. Then the database works while we format lines.
    // equivalent mutant (await, statement): only the time changes
    await setImmediate();
    // equivalent mutant (await, statement): only the time changes
    await setImmediate();
    for (const { fields } of lines) text += toRecord(kind === "detail" ? toDetail(fields) : fields);
    if (text !== "") yield { rows: lines.length, bytes: Buffer.from(text) };
  }
}

export async function measureFile(kind: Kind, readPage: ReadPage): Promise<Measure> {
  const hash = createHash("sha256");
  let [rows, bytes] = [0, 0];
  for await (const piece of renderFile(kind, readPage)) {
    hash.update(piece.bytes);
    rows += piece.rows;
    bytes += piece.bytes.length;
  }
  return { rows, bytes, sha256: hash.digest("hex") };
}

// Writes one record as RFC 4180 defines it. csv-stringify takes five times as long and leaves 18 kB of garbage per
// line.
function toRecord(fields: readonly (string | null)[]): string {
  let text = "";
  for (const field of fields) text += `,${field === null ? "" : quote(field)}`;
  return `${text.slice(1)}\r\n`;
}

function quote(field: string): string {
  return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}

function toDetail(fields: Line["fields"]): Line["fields"] {
  const detail = [...fields];
  for (const { index, prefix } of ids) if (fields[index] !== null) detail[index] = externalId(prefix, fields[index]!);
  for (const index of times) detail[index] = new Date(Math.floor(Number(fields[index]) / 1_000)).toISOString();
  for (const index of freeText) detail[index] = escapeFormula(fields[index] ?? null);
  return detail;
}

// Puts an apostrophe before text that a spreadsheet would run as a formula. Only for free text: -5.00 is an amount.
// Some spreadsheets skip leading blanks and invisible characters, and accept full-width signs.
export function escapeFormula(text: string | null): string | null {
  return text !== null && /^(?:[\s\p{C}]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])/u.test(text) ? `'${text}` : text;
}

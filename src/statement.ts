// The two files of a statement as CSV. The worker measures them when a day is closed, the
// API streams them, `npm run statements -- verify` measures them again: all three by renderFile, so bytes agree.
import { createHash } from "node:crypto";

export type Kind = "detail" | "summary";
export type Line = { number: number; fields: (string | null)[] };
// Lines number + 1 to number + limit; fewer only at the end of the file.
export type ReadPage = (after: number, limit: number) => Promise<Line[]>;
export type Piece = { rows: number; bytes: Buffer };
export type Measure = { rows: number; bytes: number; sha256: string };

export const columns: Record<Kind, readonly string[]> = {
  detail: [
    "business_date", "entry_id", "entry_type", "redemption_id", "reversal_id", "coupon_id", "batch_id", "template_id", "merchant_id",
    "store", "terminal", "order_id", "order_amount", "discount_amount", "currency", "occurred_at", "recorded_at",
  ],
  summary: [
    "business_date", "merchant_id", "template_id", "currency", "redemption_count", "redemption_amount", "reversal_count", "reversal_amount", "net_amount",
  ],
};

const freeText = ["store", "terminal", "order_id"].map((name) => columns.detail.indexOf(name));
// About 3 ms of work: in `npm start` calls are answered on the same thread.
export const linesPerPage = 250;

// Never more than one page in memory; the first piece has the header, and is all of a day without entries.
export async function* renderFile(kind: Kind, readPage: ReadPage): AsyncGenerator<Piece, void, undefined> {
  const header = toRecord(columns[kind]);
  for (let after = 0, isFirst = true; ; isFirst = false) {
    const lines = await readPage(after, linesPerPage);
    let text = isFirst ? header : "";
    for (const { fields } of lines) text += toRecord(kind === "detail" ? escapeFreeText(fields) : fields);
    if (text !== "") yield { rows: lines.length, bytes: Buffer.from(text) };
    if (lines.length < linesPerPage) return;
    after = lines.at(-1)!.number;
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

// RFC 4180. By hand: csv-stringify takes five times as long for it and leaves 18 kB of garbage a line.
function toRecord(fields: readonly (string | null)[]): string {
  let text = "";
  for (const field of fields) text += `,${field === null ? "" : quote(field)}`;
  return `${text.slice(1)}\r\n`;
}

function quote(field: string): string {
  return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}

function escapeFreeText(fields: Line["fields"]): Line["fields"] {
  const escaped = [...fields];
  for (const index of freeText) escaped[index] = escapeFormula(fields[index] ?? null);
  return escaped;
}

// What a spreadsheet would run as a formula gets an apostrophe before it; in texts only, as -5.00 is an amount. Some
// drop leading blanks and invisible characters before they look, and read the full-width signs too.
export function escapeFormula(text: string | null): string | null {
  return text !== null && /^(?:[\s\p{C}]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])/u.test(text) ? `'${text}` : text;
}

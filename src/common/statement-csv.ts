// The two files of a statement as CSV. The worker measures them when a day is closed, the
// API streams them, `npm run statements -- verify` measures them again: all three by renderFile, so bytes agree.
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { externalId } from "./id.ts";

export type Kind = "detail" | "summary";
// Ids of rows are UUIDs, and times are microseconds since 1970: their outside form is written here, as that takes the database
// most of a line's time.
export type Line = { number: number; fields: (string | null)[] };
// Lines number + 1 to number + limit; fewer only at the end of the file.
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
  ],
};

const prefixes = { entry_id: "led", redemption_id: "red", reversal_id: "rvs", coupon_id: "cpn" };
const ids = Object.entries(prefixes).map(([name, prefix]) => ({ index: columns.detail.indexOf(name), prefix }));
const times = ["occurred_at", "recorded_at"].map((name) => columns.detail.indexOf(name));
const freeText = ["store", "terminal", "order_id"].map((name) => columns.detail.indexOf(name));
// About 3 ms of work: in `npm start` calls are answered on the same thread.
export const linesPerPage = 500;

// Never more than two pages in memory: the next is read while one is written. The first piece has the header, and is all
// of a day without entries.
export async function* renderFile(kind: Kind, readPage: ReadPage): AsyncGenerator<Piece, void, undefined> {
  let text = toRecord(columns[kind]);
  for (let next: Promise<Line[]> | null = readPage(0, linesPerPage); next !== null; text = "") {
    const lines: Line[] = await next;
    next = lines.length < linesPerPage ? null : readPage(lines.at(-1)!.number, linesPerPage);
    // Its error is thrown when its turn comes, if it comes.
    next?.catch(() => {});
    // Two turns of the event loop until the driver has sent it: else the database waits while these lines are written.
    await setImmediate();
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

// RFC 4180. By hand: csv-stringify takes five times as long for it and leaves 18 kB of garbage a line.
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

// What a spreadsheet would run as a formula gets an apostrophe before it; in texts only, as -5.00 is an amount. Some
// drop leading blanks and invisible characters before they look, and read the full-width signs too.
export function escapeFormula(text: string | null): string | null {
  return text !== null && /^(?:[\s\p{C}]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])/u.test(text) ? `'${text}` : text;
}

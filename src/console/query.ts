// Turns a block of a page and what the address says into a statement, and its rows into cells. Parameters are always
// sent beside the statement; only what is shown for psql has them inside.
import type { Reader } from "./doors.ts";
import type { Block, Filter, Values } from "./page.ts";

/** A number keeps the digits that PostgreSQL wrote. null: the column is null. */
export type Cell = { text: string; isNumber: boolean } | null;
export type Row = Readonly<Record<string, Cell>>;
export type Result = { rows: Row[]; next: string | null };

type Statement = { text: string; params: string[] };

/** Of a block that has pages. */
export const rowsOfPage = 50;

const parameter = /(?<![:\w]):([a-z]\w*)/g;

/** The statement of a block without its order: the filters that have a value are part of it. */
function narrow({ sql }: Block, filters: readonly Filter[], values: Values): string {
  const clauses = filters.filter(({ name }) => (values[name] ?? "") !== "").map(({ where }) => `(${where})`);
  return clauses.length === 0 ? sql : `select * from (${sql}) f where ${clauses.join(" and ")}`;
}

export function bind(text: string, values: Values): Statement {
  const params: string[] = [];
  const bound = text.replace(parameter, (_, name: string) => {
    params.push(values[name] ?? "");
    return `$${params.length}::text`;
  });
  return { text: bound, params };
}

const orderOf = ({ newestBy = {} }: Block): string => {
  const columns = Object.keys(newestBy);
  return columns.length === 0 ? "" : ` order by ${columns.map((name) => `${name} desc`).join(", ")}`;
};

export type Asked = { block: Block; filters: readonly Filter[]; values: Values };

/** A page of rows. `cursor` is the `next` of the page before. */
export async function readRows(
  reader: Reader,
  { block, filters, values }: Asked,
  { cursor, limit }: { cursor: string | null; limit: number },
): Promise<Result> {
  const { text, params } = bind(narrow(block, filters, values), values);
  const columns = Object.entries(block.newestBy ?? {});
  const after = cursor === null ? [] : parseCursor(cursor, columns.length);
  const places = columns.map(([, type], index) => `$${params.length + index + 1}::text::${type}`);
  // The second condition is what an index of the first column can search by.
  const rest = `(${columns.map(([name]) => name).join(", ")}) < (${places.join(", ")})`;
  const where = after.length === 0 ? "" : ` where ${rest} and ${columns[0]![0]} <= ${places[0]}`;
  const keys = columns.map(([name]) => `q.${name}::text`).join(", ");
  const found = await reader.rows<{ row: string; keys: string[] }>(
    `select row_to_json(q)::text as row, array[${keys}]::text[] as keys
     from (select * from (${text}) p${where}${orderOf(block)} limit ${limit + 1}) q`,
    [...params, ...after],
  );
  const shown = found.slice(0, limit);
  const isMore = columns.length > 0 && found.length > limit;
  return {
    rows: shown.map(({ row }) => parseRow(row)),
    next: isMore ? Buffer.from(JSON.stringify(shown.at(-1)!.keys)).toString("base64url") : null,
  };
}

/** A cursor that nobody got from us means the first page. */
function parseCursor(cursor: string, count: number): string[] {
  try {
    const keys: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    const isOurs = Array.isArray(keys) && keys.length === count && keys.every((key) => typeof key === "string");
    return isOurs ? (keys as string[]) : [];
  } catch {
    return [];
  }
}

/** A page_key only orders the rows. */
function parseRow(text: string): Row {
  const row = JSON.parse(text, (name, value: unknown, { source }: { source?: string } = {}) =>
    typeof value === "number" ? { text: source!, isNumber: true } : value,
  ) as Record<string, unknown>;
  const shown = Object.entries(row).filter(([name]) => name !== "page_key");
  return Object.fromEntries(shown.map(([name, value]) => [name, toCell(value)]));
}

function toCell(value: unknown): Cell {
  if (value === null || value === undefined) return null;
  if (typeof value !== "object") return { text: String(value), isNumber: false };
  const isList = Array.isArray(value) && value.every((item) => typeof item === "string");
  if (isList) return value.length === 0 ? null : { text: value.join(", "), isNumber: false };
  if ("isNumber" in value) return value as Cell;
  return {
    text: JSON.stringify(value, (_, part) => (part?.isNumber === true ? Number(part.text) : part)),
    isNumber: false,
  };
}

/** The same question for psql. */
export function formatForPsql({ block, filters, values }: Asked): string {
  const quoted = narrow(block, filters, values).replace(
    parameter,
    (_, name: string) => `'${(values[name] ?? "").replaceAll("'", "''")}'`,
  );
  return `${quoted}${orderOf(block)}${block.newestBy === undefined ? "" : `\nlimit ${rowsOfPage}`};`;
}

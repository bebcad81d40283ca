// What a page of the console is: a declaration. The frame (render.ts, app.ts) makes everything else of it: the table,
// its order and pages, the filters, the CSV, and the query to copy into psql.
import type { HTTPResponse } from "h3";
import type { Logger } from "../common/log.ts";
import type { Database } from "../database/types.ts";

/** A question to the database. Names as `:batch` in its SQL are filters, or parts of the page's path. */
export type Block = {
  title: string;
  /** A select over report.*, without its order and limit. */
  sql: string;
  /** What a reader must know of it. */
  note?: string;
  /** Shown in place of no rows. */
  none?: string;
  /** facts: one row, a line for each column. chart: times, then numbers; a text between them names a line. */
  as: "table" | "facts" | "chart";
  /** Of a table with pages, newest first: columns, and their types, of which no two rows have the same values. */
  newestBy?: Readonly<Record<string, string>>;
};

export type Filter = {
  name: string;
  label: string;
  /** The part of a where clause that it adds, with its own name as the parameter. */
  where: string;
  choices?: readonly string[];
};

/** Of the path, what follows its question mark, and a form. */
export type Values = Readonly<Record<string, string>>;

/** Of an action. `error`: why it was refused, or what is wrong; null: it is done. */
export type Outcome = { error: string | null; found?: string };

/** What staff can do. `call`: a function of the database, or what calls several. Its values are in path and form. */
export type Action = {
  name: string;
  label: string;
  call: string | ((own: Database, values: Values) => Promise<Outcome>);
  /** Further fields of its form, by name and label. */
  fields?: Readonly<Record<string, string>>;
  /** What a reader must know before. */
  note?: string;
  /** It changes nothing that belongs to anybody. Any other asks for a reason. */
  isWithoutReason?: boolean;
};

/** Files to download, by name. */
export type Files = Readonly<Record<string, (parts: FileParts, values: Values) => Promise<HTTPResponse>>>;
export type FileParts = { reader: Pick<Database, "rows">; log: Logger };

export type Page = {
  /** For example /batches/:batch. */
  path: string;
  title: string;
  /** Whether the menu shows it. */
  isInMenu?: boolean;
  /** Values of this column lead to it, with the row's values of all filters. */
  linkedFrom?: string;
  filters?: readonly Filter[];
  blocks: readonly Block[];
  actions?: readonly Action[];
  files?: Files;
  refreshSeconds?: number;
};

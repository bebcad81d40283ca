// What a page of the console is: a declaration. The frame (render.ts, app.ts) makes everything else of it: the table,
// its order and pages, the filters, the CSV, and the query to copy into psql.

/** A question to the database. Names as `:batch` in its SQL are filters, or parts of the page's path. */
export type Block = {
  title: string;
  /** A select over report.*, without its order and limit. */
  sql: string;
  /** facts: one row, a line for each column. chart: the first column has times. */
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

/** A change that staff can make. `call`: a function of schema admin. Its parameters are in the path or the form. */
export type Action = {
  name: string;
  label: string;
  call: string;
  /** Further fields of its form, by name and label. A reason is always asked for. */
  fields?: Readonly<Record<string, string>>;
};

export type Page = {
  /** For example /batches/:batch. */
  path: string;
  title: string;
  /** Whether the menu shows it. */
  isInMenu?: boolean;
  filters?: readonly Filter[];
  blocks: readonly Block[];
  actions?: readonly Action[];
  refreshSeconds?: number;
};

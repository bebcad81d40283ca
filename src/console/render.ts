// The blocks of a page as HTML. Whatever the database returns is text.
import { markup, type Markup } from "./markup.ts";
import type { Block } from "./page.ts";
import type { Row } from "./query.ts";

/** Of a row: where the page about this column is; null if there is none. */
export type Link = (column: string, row: Row) => string | null;

/** It may have several lines. */
const longText = 60;
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00$/;
const status = /^[A-Z]{3,}(_[A-Z]+)*$/;

const labelOf = (column: string): string => {
  const words = column.replaceAll("_", " ").replace(/ at$/, "");
  return words[0]!.toUpperCase() + words.slice(1);
};

function renderCell(column: string, row: Row, link: Link): Markup {
  const cell = row[column]!;
  if (cell === null) return markup`<span class="none">–</span>`;
  const { text } = cell;
  if (time.test(text))
    return markup`<time datetime="${text}" title="${text}">${text.slice(0, 19).replace("T", " ")}</time>`;
  const target = link(column, row);
  if (target !== null) return markup`<a href="${target}">${text}</a>`;
  if (status.test(text) && text !== row["currency"]?.text) return markup`<span class="status ${text}">${text}</span>`;
  return markup`${text}`;
}

export function renderBlock({ as, title, none = "Nothing here." }: Block, rows: Row[], link: Link): Markup {
  const [first] = rows;
  if (first === undefined) return markup`<p class="none">${none}</p>`;
  const columns = Object.keys(first);
  if (as === "facts")
    return markup`<dl>${columns.map(
      (column) => markup`<div><dt>${labelOf(column)}</dt><dd>${renderCell(column, first, link)}</dd></div>`,
    )}</dl>`;
  // Also where a number is missing.
  const numbers = new Set(columns.filter((name) => rows.some((row) => row[name]?.isNumber === true)));
  const classOf = (name: string, row: Row): Markup | null => {
    if (numbers.has(name)) return markup` class="number"`;
    return (row[name]?.text.length ?? 0) > longText ? markup` class="long"` : null;
  };
  const heads = columns.map((name) => markup`<th scope="col"${classOf(name, first)}>${labelOf(name)}</th>`);
  const lines = rows.map(
    (
      row,
    ) => markup`<tr>${columns.map((name) => markup`<td${classOf(name, row)}>${renderCell(name, row, link)}</td>`)}</tr>
`,
  );
  const table = markup`<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table>
<thead><tr>${heads}</tr></thead><tbody>${lines}</tbody></table></div>`;
  if (as === "table") return table;
  return markup`<figure class="chart"><details><summary>Figures</summary>${table}</details></figure>`;
}

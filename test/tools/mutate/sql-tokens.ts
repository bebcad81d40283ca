// Runs of SQL tokens: how far an expression, a clause or a list reaches, and edits of them. The parser tells only where
// a node is.
import type { Edit } from "./edit.ts";
import type { SqlSource, Token } from "./sql-source.ts";

const clauseWords = new Set(
  `where on having group order limit offset for union except intersect join left right inner cross full using
  returning loop set do into window from when then else end values select if elsif return perform while by nulls`
    .trim()
    .split(/\s+/),
);

/** Whether the token ends the expression beside it. */
export function isBoundary(tokens: Token[], index: number): boolean {
  const { text } = tokens[index]!;
  if ([",", ";", ":="].includes(text)) return true;
  if (!clauseWords.has(text)) return false;
  // `is distinct from` and the functions left() and right() are parts of expressions.
  if (text === "from" && tokens[index - 1]?.text === "distinct") return false;
  return !(["left", "right"].includes(text) && tokens[index + 1]?.text === "(");
}

type Stop = (index: number) => boolean;

/** The last index of the run of tokens that begins with `index` and does not leave its parentheses. */
export function runEnd(tokens: Token[], index: number, isStop: Stop, step = 1): number {
  const { depth } = tokens[index]!;
  for (let at = index; ; at += step) {
    const next = tokens[at + step];
    if (next === undefined || next.depth < depth || (next.depth === depth && isStop(at + step))) return at;
  }
}

/** The first index of the run of tokens that ends with `index`. */
export const runStart = (tokens: Token[], index: number, isStop: Stop): number => runEnd(tokens, index, isStop, -1);

/** Splits a run at the separators of its own depth. */
export function split(tokens: Token[], first: number, last: number, separator: string): [number, number][] {
  const { depth } = tokens[first]!;
  const parts: [number, number][] = [];
  let from = first;
  let isBetween = false;
  for (let at = first; at <= last + 1; at += 1) {
    const here = at <= last && tokens[at]!.depth === depth ? tokens[at]!.text : "";
    if (here === "between") isBetween = true;
    else if (at > last || (here === separator && !isBetween)) {
      parts.push([from, at - 1]);
      from = at + 1;
    } else if (here === "and") isBetween = false;
  }
  return parts;
}

export const textOf = ({ text, tokens }: SqlSource, from: number, to: number): string =>
  text.slice(tokens[from]!.start, tokens[to]!.end);

export const replace = (
  { tokens }: SqlSource,
  from: number,
  to: number,
  replacement: string,
  operator: string,
): Edit => ({ start: tokens[from]!.start, end: tokens[to]!.end, replacement, operator });

/** Removes tokens and the blanks after them. */
export function cut(source: SqlSource, from: number, to: number, operator: string): Edit {
  const { start, end } = replace(source, from, to, "", operator);
  return { start, end: source.tokens[to + 1]?.start ?? end, replacement: "", operator };
}

/** Drops one item of a list that begins at `first`, with its comma. */
export function dropItems(source: SqlSource, first: number, operator: string): Edit[] {
  const { tokens } = source;
  const last = runEnd(tokens, first, (at) => isBoundary(tokens, at) && tokens[at]!.text !== ",");
  const items = split(tokens, first, last, ",");
  if (items.length < 2 || tokens[first]!.text === "select") return [];
  return items.map(([from, to], place) =>
    place === 0 ? cut(source, from, items[1]![0] - 1, operator) : replace(source, from - 1, to, "", operator),
  );
}

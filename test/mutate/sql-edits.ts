// Edits of SQL by tokens.
import type { Edit } from "./mutant.ts";
import type { SqlSource, Token } from "./sql-source.ts";
import { isBoundary, runEnd } from "./sql-text.ts";

export const replace = (
  { tokens }: SqlSource,
  from: number,
  to: number,
  replacement: string,
  operator: string,
): Edit => ({
  start: tokens[from]!.start,
  end: tokens[to]!.end,
  replacement,
  operator,
});

export const insert = ({ tokens }: SqlSource, before: number, text: string, operator: string): Edit => ({
  start: tokens[before]!.start,
  end: tokens[before]!.start,
  replacement: text,
  operator,
});

/** Removes tokens and the blanks after them. */
export function cut(source: SqlSource, from: number, to: number, operator: string): Edit {
  const { start, end } = replace(source, from, to, "", operator);
  return { start, end: source.tokens[to + 1]?.start ?? end, replacement: "", operator };
}

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

/** Drops one item of a list that begins at `first`, with its comma. */
export function dropItems(source: SqlSource, first: number, operator: string): Edit[] {
  const { tokens } = source;
  const isComma = (at: number): boolean => tokens[at]!.text === ",";
  const last = runEnd(tokens, first, (at) => isBoundary(tokens, at) && !isComma(at));
  const items = split(tokens, first, last, ",");
  if (items.length < 2 || tokens[first]!.text === "select") return [];
  return items.map(([from, to], place) =>
    place === 0 ? cut(source, from, items[1]![0] - 1, operator) : replace(source, from - 1, to, "", operator),
  );
}

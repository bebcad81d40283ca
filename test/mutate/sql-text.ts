// Finds how far an expression or clause of SQL reaches. The parser tells only where a node is.
import type { Token } from "./sql-source.ts";

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

/** The first index of the run of tokens that ends with `index` and does not leave its parentheses. */
export function runStart(tokens: Token[], index: number, isStop: Stop): number {
  const { depth } = tokens[index]!;
  let at = index;
  while (at > 0) {
    const previous = tokens[at - 1]!;
    if (previous.depth < depth || (previous.depth === depth && isStop(at - 1))) break;
    at -= 1;
  }
  return at;
}

/** The last index of the run of tokens that begins with `index` and does not leave its parentheses. */
export function runEnd(tokens: Token[], index: number, isStop: Stop): number {
  const { depth } = tokens[index]!;
  let at = index;
  while (at + 1 < tokens.length) {
    const next = tokens[at + 1]!;
    if (next.depth < depth || (next.depth === depth && isStop(at + 1))) break;
    at += 1;
  }
  return at;
}

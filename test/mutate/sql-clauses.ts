// The slips in whole clauses of SQL, found by the word that opens them.
import type { Edit } from "./mutant.ts";
import { cut, dropItems, replace, split } from "./sql-edits.ts";
import type { SqlSource, Token } from "./sql-source.ts";
import { isBoundary, runEnd } from "./sql-text.ts";

export function mutateClause(source: SqlSource, index: number): Edit[] {
  const { tokens } = source;
  const word = tokens[index]!.text;
  const next = tokens[index + 1]?.text;
  const isEnd = (at: number): boolean => isBoundary(tokens, at);
  const isEndOfList = (at: number): boolean => isEnd(at) && tokens[at]!.text !== ",";
  const condition = (): [number, number] => [index + 1, runEnd(tokens, index + 1, isEnd)];
  const always = (value: string): Edit => replace(source, ...condition(), value, "condition");
  switch (word) {
    case "where":
      // Otherwise each operand is dropped alone.
      return split(tokens, ...condition(), "and").length > 1 ? [] : [always("true")];
    case "if":
    case "elsif":
      return next === "exists" || tokens[index - 1]?.text === "end" ? [] : [always("false"), always("true")];
    case "when":
      return isCondition(tokens, index) ? [always("false")] : [];
    case "order":
    case "partition":
      return next !== "by" ? [] : mutateOrder(source, index, runEnd(tokens, index + 2, isEndOfList));
    case "limit":
      return [cut(source, ...([index, condition()[1]] as const), "limit")];
    case "set":
      return dropItems(source, index + 1, "assignment");
    case "for":
      return ["update", "share", "no", "key"].includes(next ?? "") ? dropLock(source, index) : [];
    case "union":
      return next === "all"
        ? [cut(source, index + 1, index + 1, "union")]
        : [replace(source, index, index, "union all", "union")];
    case "distinct":
      return tokens[index - 1]?.text === "is" || tokens[index - 1]?.text === "not" || next === "on"
        ? []
        : [cut(source, index, index, "distinct")];
    case "left":
      return next === "join" ? [cut(source, index, index, "join")] : [];
    default:
      return [];
  }
}

/** `when` names a value in `case x when 1`, and an error after `exception`. */
function isCondition(tokens: Token[], index: number): boolean {
  if (tokens[index - 1]?.text === "exception") return false;
  const { depth } = tokens[index]!;
  const opener = tokens.slice(0, index).findLast((token) => token.depth === depth - 1 && token.text === "case");
  return opener === undefined || tokens[tokens.indexOf(opener) + 1]!.text === "when";
}

function mutateOrder(source: SqlSource, index: number, last: number): Edit[] {
  const { tokens } = source;
  const whole = cut(source, index, last, "order");
  if (tokens[index]!.text === "partition") return [whole];
  const { depth } = tokens[index]!;
  const flipped = split(tokens, index + 2, last, ",").map(([from, to]): Edit => {
    const range = Array.from({ length: to - from + 1 }, (_, i) => from + i);
    const direction = range.find((at) => tokens[at]!.depth === depth && ["asc", "desc"].includes(tokens[at]!.text));
    if (direction !== undefined)
      return replace(source, direction, direction, tokens[direction]!.text === "asc" ? "desc" : "asc", "order");
    const nulls = range.find((at) => tokens[at]!.depth === depth && tokens[at]!.text === "nulls");
    const { end } = tokens[nulls === undefined ? to : nulls - 1]!;
    return { start: end, end, replacement: " desc", operator: "order" };
  });
  return [whole, ...flipped];
}

function dropLock(source: SqlSource, index: number): Edit[] {
  const { tokens } = source;
  const last = runEnd(tokens, index + 1, (at) => isBoundary(tokens, at));
  const skip = tokens.findIndex(({ text }, at) => at > index && at <= last && text === "skip");
  return [cut(source, index, last, "lock"), ...(skip === -1 ? [] : [cut(source, skip, skip + 1, "lock")])];
}

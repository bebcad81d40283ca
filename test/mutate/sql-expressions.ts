// The slips in expressions of SQL, found by the nodes of the syntax tree.
import type { Edit } from "./mutant.ts";
import { cut, dropItems, insert, replace, split } from "./sql-edits.ts";
import type { Node, SqlSource } from "./sql-source.ts";
import { isBoundary, runEnd, runStart } from "./sql-text.ts";

/** `index` is that of the token where the node is. */
export function mutateNode(source: SqlSource, node: Node, index: number): Edit[] {
  switch (node.type) {
    case "A_Expr":
      return mutateOperator(source, node, index);
    case "BoolExpr":
      return mutateBoolean(source, node, index);
    case "NullTest":
    case "BooleanTest":
      return toggleNot(source, index + 1);
    case "SubLink":
      return source.tokens[index]!.text === "exists" && source.tokens[index - 1]?.text !== "not"
        ? [insert(source, index, "not ", "negation")]
        : [];
    case "A_Const":
      return mutateConstant(source, index);
    case "FuncCall":
    case "MinMaxExpr":
    case "CoalesceExpr":
      return mutateCall(source, index);
    case "ColumnRef":
      return swapColumn(source, node, index);
    default:
      return [];
  }
}

const operators: Record<string, [string, string]> = {
  "<": ["<=", "boundary"],
  "<=": ["<", "boundary"],
  ">": [">=", "boundary"],
  ">=": [">", "boundary"],
  "=": ["<>", "comparison"],
  "<>": ["=", "comparison"],
  "+": ["-", "sign"],
  "-": ["+", "sign"],
  "*": ["/", "arithmetic"],
  "/": ["*", "arithmetic"],
};

function mutateOperator(source: SqlSource, { fields }: Node, index: number): Edit[] {
  const { text } = source.tokens[index]!;
  if (fields["kind"] === "AEXPR_DISTINCT" || fields["kind"] === "AEXPR_NOT_DISTINCT")
    return toggleNot(source, index + 1);
  if (fields["kind"] === "AEXPR_IN")
    return text === "not"
      ? [replace(source, index, index + 1, "in", "negation"), ...dropElements(source, index + 2)]
      : [insert(source, index, "not ", "negation"), ...dropElements(source, index + 1)];
  if (["like", "ilike", "between"].includes(text)) return [insert(source, index, "not ", "negation")];
  if (text === "not") return [replace(source, index, index + 1, source.tokens[index + 1]!.text, "negation")];
  const [replacement, operator] = operators[text] ?? [];
  return replacement === undefined ? [] : [replace(source, index, index, replacement, operator!)];
}

/** `index` is the token after `is`. */
function toggleNot(source: SqlSource, index: number): Edit[] {
  const { tokens } = source;
  return tokens[index]!.text === "not"
    ? [replace(source, index, index + 1, tokens[index + 1]!.text, "negation")]
    : [insert(source, index, "not ", "negation")];
}

/** Drops one element of a list of at least two. `open` is its parenthesis. */
function dropElements(source: SqlSource, open: number): Edit[] {
  return dropItems(source, open + 1, "element");
}

/** `and`, `or`: each operand becomes one that does not matter. */
function mutateBoolean(source: SqlSource, { fields }: Node, index: number): Edit[] {
  const { tokens } = source;
  const word = tokens[index]!.text;
  if (fields["boolop"] === "NOT_EXPR") return [cut(source, index, index, "negation")];
  const isStop = (at: number): boolean => isBoundary(tokens, at) || (word === "and" && tokens[at]!.text === "or");
  const first = runStart(tokens, index, isStop);
  const last = runEnd(tokens, index, isStop);
  return split(tokens, first, last, word).map(([from, to]) =>
    replace(source, from, to, word === "and" ? "true" : "false", "operand"),
  );
}

function mutateConstant(source: SqlSource, index: number): Edit[] {
  const { start, end, text } = source.tokens[index]!;
  const to = (replacement: string): Edit[] => [replace(source, index, index, replacement, "literal")];
  if (text === "true") return to("false");
  if (text === "false") return to("true");
  if (/^\d+$/.test(text)) return to(String(Number(text) + 1));
  if (!text.startsWith("'")) return [];
  const written = source.text.slice(start, end);
  // '5 minutes', '0.1'
  if (/^'\d/.test(written)) return to(written.replace(/\d+/, (digits) => String(Number(digits) + 1)));
  // Not in a directive of format().
  const changed = written.replace(/(?<!%)[A-Za-z]/, (letter) => (letter === "x" ? "y" : "x"));
  return changed === written ? [] : to(changed);
}

const calls: Record<string, string> = {
  now: "clock_timestamp",
  clock_timestamp: "now",
  statement_timestamp: "clock_timestamp",
  min: "max",
  max: "min",
  least: "greatest",
  greatest: "least",
  floor: "ceil",
  ceil: "floor",
  round: "floor",
  trunc: "ceil",
  bool_and: "bool_or",
  bool_or: "bool_and",
  lower: "upper",
  upper: "lower",
  lag: "lead",
  lead: "lag",
  sum: "max",
};

function mutateCall(source: SqlSource, index: number): Edit[] {
  const { tokens } = source;
  const { text } = tokens[index]!;
  if (text === "coalesce") {
    const last = runEnd(tokens, index + 2, () => false);
    return split(tokens, index + 2, last, ",").map(([from, to]) =>
      replace(source, index, last + 1, source.text.slice(tokens[from]!.start, tokens[to]!.end), "coalesce"),
    );
  }
  return calls[text] === undefined ? [] : [replace(source, index, index, calls[text], "function")];
}

/** `c.valid_from` becomes `c.valid_to`: another column of the same table, or variable, with a similar name. */
function swapColumn(source: SqlSource, node: Node, index: number): Edit[] {
  const read = ({ fields }: Node): string[] | null => {
    const names = (fields["fields"] as { String?: { sval: string } }[]).map(({ String: name }) => name?.sval);
    return names.length <= 2 && names.every((name) => name !== undefined) ? (names as string[]) : null;
  };
  const own = read(node);
  if (own === null) return [];
  const kind = (names: string[]): string =>
    `${names.length === 2 ? names[0] : names[0]!.slice(0, 2)} ${names.at(-1)!.split("_").at(-1)}`;
  const others = source.nodes
    .filter(({ type }) => type === "ColumnRef")
    .map(read)
    .filter((names) => names !== null && names.length === own.length && kind(names) === kind(own))
    .map((names) => names!.at(-1)!);
  const names = [...new Set(others)].sort();
  const other = names[(names.indexOf(own.at(-1)!) + 1) % names.length]!;
  const at = index + (own.length === 2 ? 2 : 0);
  return names.length < 2 ? [] : [replace(source, at, at, other, "column")];
}

// The slips in SQL. Some edits do not load, and judge.ts finds them.
//
// The order and the text of the edits make the IDs of the mutants: an operator that changes gives other mutants.
import { type Node, type SqlSource, type Token, code, readSql, schema } from "./sql-source.ts";
import { calls, type Edit, operators } from "./edit.ts";
import { cut, dropItems, isBoundary, replace, runEnd, runStart, split, textOf } from "./sql-tokens.ts";

export function mutateSql(text: string): Edit[] {
  const source = readSql(text, code);
  return [
    ...mutateNodes(source, Object.keys(mutators)),
    ...source.tokens.flatMap((_, index) => mutateClause(source, index)),
    ...dropStatements(source),
  ];
}

// What is forgotten in a table, an index or a trigger. A check becomes one that always holds.
const definitions: [RegExp, string, string][] = [
  [/(?<! is) not null\b/g, "", "not null"],
  [/\bcheck \(/g, "check (true or ", "check"],
  [/(?<=^create) unique| unique(?=[,\n])/g, "", "unique"],
  [/,\s*(constraint \w+ )?(unique|foreign key) \([^;]*?(?=,\n|\n\))/g, "", "key"],
  [/(?<!\)) references [\w.]+/g, "", "key"],
  [/^create (index|trigger|constraint trigger) [^]*/g, "", "object"],
];

/** The slips in the tables, indexes and triggers of a migration. Only the conditions of constraints are expressions. */
export function mutateSchema(text: string): Edit[] {
  const source = readSql(text, schema);
  return [
    ...mutateNodes(source, ["A_Expr", "BoolExpr", "NullTest", "A_Const", "FuncCall"]),
    ...source.tokens.flatMap((token, index) => (token.text === "of" ? dropItems(source, index + 1, "element") : [])),
    ...source.statements.flatMap((statement) => editAll(definitions, statement)),
  ];
}

/** Forgets one right. */
export const mutateGrants = (text: string): Edit[] =>
  editAll([[/^(grant|revoke) [^;]*;/gm, "", "grant"]], { text, start: 0 });

const editAll = (rules: [RegExp, string, string][], { text, start }: { text: string; start: number }): Edit[] =>
  rules.flatMap(([pattern, replacement, operator]) =>
    [...text.matchAll(pattern)].map(({ 0: found, index }) => ({
      start: start + index,
      end: start + index + found.length,
      replacement,
      operator,
    })),
  );

/** By the type of a node. `index` is that of the token where it is. */
const mutators: Record<string, (source: SqlSource, index: number, node: Node) => Edit[]> = {
  A_Expr: mutateOperator,
  BoolExpr: mutateBoolean,
  NullTest: (source, index) => toggleNot(source, index + 1),
  BooleanTest: (source, index) => toggleNot(source, index + 1),
  SubLink: ({ tokens }, index) =>
    tokens[index]!.text === "exists" && tokens[index - 1]?.text !== "not" ? [negate(tokens[index]!)] : [],
  A_Const: mutateConstant,
  A_ArrayExpr: (source, index) => dropItems(source, index + 2, "element"),
  FuncCall: mutateCall,
  MinMaxExpr: mutateCall,
  CoalesceExpr: mutateCall,
  ColumnRef: (source, index, node) => [...swapColumn(source, node, index), ...swapRow(source, index)],
};

function mutateNodes(source: SqlSource, types: string[]): Edit[] {
  const indexAt = new Map(source.tokens.map(({ start }, index) => [start, index]));
  return source.nodes
    .filter(({ type, at }) => types.includes(type) && indexAt.has(at))
    .flatMap((node) => mutators[node.type]!(source, indexAt.get(node.at)!, node));
}

function mutateOperator(source: SqlSource, index: number, { fields }: Node): Edit[] {
  const token = source.tokens[index]!;
  const { text } = token;
  if (fields["kind"] === "AEXPR_DISTINCT" || fields["kind"] === "AEXPR_NOT_DISTINCT")
    return toggleNot(source, index + 1);
  if (fields["kind"] === "AEXPR_IN")
    return text === "not"
      ? [replace(source, index, index + 1, "in", "negation"), ...dropItems(source, index + 3, "element")]
      : [negate(token), ...dropItems(source, index + 2, "element")];
  if (["like", "ilike", "between"].includes(text)) return [negate(token)];
  if (text === "not") return [replace(source, index, index + 1, source.tokens[index + 1]!.text, "negation")];
  const [replacement, operator] = operators[text] ?? [];
  if (replacement === undefined) return [];
  const edit = replace(source, index, index, replacement, operator!);
  return [{ ...edit, isEquivalent: operator === "boundary" && isClock(source, index + 1) }];
}

/** Whether the clock is read here, or a variable that holds it. No stored time is equal to it. */
function isClock({ text, tokens }: SqlSource, index: number): boolean {
  const word = tokens[index]!.text;
  if (!word.startsWith("v_")) return word === "clock_timestamp";
  return new RegExp(`\\b${word}\\b[ \\w]* := clock_timestamp\\(\\)`).test(text);
}

/** `index` is the token after `is`. */
function toggleNot(source: SqlSource, index: number): Edit[] {
  const { tokens } = source;
  return tokens[index]!.text === "not"
    ? [replace(source, index, index + 1, tokens[index + 1]!.text, "negation")]
    : [negate(tokens[index]!)];
}

const negate = ({ start, text }: Token): Edit => ({
  start,
  end: start + text.length,
  replacement: `not ${text}`,
  operator: "negation",
});

/** `and`, `or`: each operand becomes one that does not matter. */
function mutateBoolean(source: SqlSource, index: number, { fields }: Node): Edit[] {
  const { tokens } = source;
  const word = tokens[index]!.text;
  if (fields["boolop"] === "NOT_EXPR") return [cut(source, index, index, "negation")];
  const isStop = (at: number): boolean => isBoundary(tokens, at) || (word === "and" && tokens[at]!.text === "or");
  const first = runStart(tokens, index, isStop);
  const last = runEnd(tokens, index, isStop);
  const parts = split(tokens, first, last, word);
  const texts = parts.map(([from, to]) => textOf(source, from, to));
  return parts.map(([from, to], place) => ({
    ...replace(source, from, to, word === "and" ? "true" : "false", "operand"),
    isEquivalent: word === "and" && isNeedlessTenant(texts[place]!, texts),
  }));
}

// A schema constraint says so.
const uniqueAcrossTenants = ["batch_id", "merchant_id", "event_seq"];

/** Whether the condition compares a row's tenant, and another one its key with that of a row of the same tenant. */
function isNeedlessTenant(condition: string, conditions: string[]): boolean {
  const [, left, right] = /^(\w+)\.tenant_id = (\w+)\.tenant_id$/.exec(condition) ?? [];
  if (left === undefined) return false;
  const isSameRow = (one: string, other: string): boolean =>
    (one === left && (other === right || other.startsWith("v_"))) || (one === right && other === left);
  return conditions.some((other) => {
    const [, one, key, two, same] = /^(\w+)\.(\w+) = (\w+)\.(\w+)$/.exec(other) ?? [];
    return key !== undefined && key === same && uniqueAcrossTenants.includes(key) && isSameRow(one!, two!);
  });
}

function mutateConstant(source: SqlSource, index: number): Edit[] {
  const { start, end, text } = source.tokens[index]!;
  const to = (...replacements: string[]): Edit[] =>
    replacements.map((replacement) => replace(source, index, index, replacement, "literal"));
  if (text === "true") return to("false");
  if (text === "false") return to("true");
  if (/^\d+$/.test(text)) {
    const isNeedless = source.tokens[index - 1]!.text === "limit" && selectsInto(source, index - 1);
    return to(...moveNumber(text)).map((edit) => ({ ...edit, isEquivalent: isNeedless && text === "1" }));
  }
  if (!text.startsWith("'")) return [];
  const written = source.text.slice(start, end);
  // '5 minutes', '0.1'
  const digits = /^'(\d+)/.exec(written)?.[1];
  if (digits !== undefined) return to(...moveNumber(digits).map((moved) => written.replace(digits, moved)));
  // Not in a directive of format().
  const changed = written.replace(/(?<!%)[A-Za-z]/, (letter) => (letter === "x" ? "y" : "x"));
  return changed === written ? [] : to(changed);
}

/** 0 and 1 only grow: a step down often changes the kind of thing, not its size. */
const moveNumber = (digits: string): string[] =>
  (Number(digits) < 2 ? [1] : [1, -1]).map((step) => String(Number(digits) + step));

function mutateCall(source: SqlSource, index: number): Edit[] {
  const { tokens } = source;
  const { text } = tokens[index]!;
  if (text === "coalesce") {
    const last = runEnd(tokens, index + 2, () => false);
    return split(tokens, index + 2, last, ",").map(([from, to]) =>
      replace(source, index, last + 1, source.text.slice(tokens[from]!.start, tokens[to]!.end), "coalesce"),
    );
  }
  const other = text === "now" ? "clock_timestamp" : calls[text];
  return other === undefined ? [] : [replace(source, index, index, other, "function")];
}

/** In a trigger, the row before is taken for the row after. */
function swapRow(source: SqlSource, index: number): Edit[] {
  const other = { old: "new", new: "old" }[source.tokens[index]!.text];
  return other === undefined ? [] : [replace(source, index, index, other, "row")];
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

function mutateClause(source: SqlSource, index: number): Edit[] {
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
      return [{ ...cut(source, index, condition()[1], "limit"), isEquivalent: selectsInto(source, index) }];
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

/** `select into` takes the first row. A limit tells only the planner. */
function selectsInto({ tokens }: SqlSource, index: number): boolean {
  const isEnd = (at: number): boolean => [";", "begin", "then", "else", "loop"].includes(tokens[at]!.text);
  const [first, last] = [runStart(tokens, index, isEnd), runEnd(tokens, index, isEnd)];
  const { depth } = tokens[index]!;
  const into = tokens.slice(first, last).some((token) => token.depth === depth && token.text === "into");
  return into && tokens[first]!.text === "select";
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
  const items = dropItems(source, index + 2, "order");
  if (tokens[index]!.text === "partition") return [whole, ...items];
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
  return [whole, ...flipped, ...items];
}

function dropLock(source: SqlSource, index: number): Edit[] {
  const { tokens } = source;
  const last = runEnd(tokens, index + 1, (at) => isBoundary(tokens, at));
  const skip = tokens.findIndex(({ text }, at) => at > index && at <= last && text === "skip");
  return [cut(source, index, last, "lock"), ...(skip === -1 ? [] : [cut(source, skip, skip + 1, "lock")])];
}

const openers = new Set(["begin", ";", "then", "else", "loop"]);
/** Begin a statement that holds others, end one, or have no effect. */
const others = new Set(
  "if elsif else end case loop while for foreach begin declare exception when return null".split(" "),
);

/** Replaces each simple statement with `null;`. A lost `return` is an error, so it is no slip, except before others. */
function dropStatements({ tokens, bodies }: SqlSource): Edit[] {
  return bodies.flatMap(({ start, end }) => {
    const inside = tokens.filter((token) => token.start >= start && token.end <= end);
    const edits: Edit[] = [];
    let at = inside.findIndex(({ text }) => text === "begin");
    while (at !== -1 && at + 1 < inside.length) {
      const first = inside[at + 1]!;
      const isOpener = openers.has(inside[at]!.text) && inside[at - 1]?.text !== "end";
      if (!isOpener || others.has(first.text)) {
        at += 1;
        continue;
      }
      const last = inside.findIndex(({ text, depth }, index) => index > at && text === ";" && depth === first.depth);
      if (last === -1) break;
      edits.push({ start: first.start, end: inside[last]!.end, replacement: "null;", operator: "statement" });
      at = last;
    }
    return edits;
  });
}

// Reads an SQL file with PostgreSQL's own lexer and parsers (libpg-query): the tokens of the file and of the function
// bodies in it, and the nodes of the syntax trees, with their places in the file.
import { loadModule, parsePlPgSQLSync, parseSync, scanSync } from "libpg-query";

await loadModule();

export interface Token {
  start: number;
  end: number;
  /** In lower case, as the source has it. */
  text: string;
  /** How many parentheses, brackets, `case` and `begin` are open around it. */
  depth: number;
}

/** A node of a syntax tree: its type, its fields, and its place in the file. */
export interface Node {
  type: string;
  fields: Record<string, unknown>;
  at: number;
}

export interface Body {
  start: number;
  end: number;
  isPlPgSql: boolean;
}

export interface SqlSource {
  text: string;
  tokens: Token[];
  nodes: Node[];
  bodies: Body[];
}

/** Throws when PostgreSQL would not parse the file. */
export function readSql(text: string): SqlSource {
  // The parser counts bytes. Other characters occur only in comments and strings.
  const ascii = text.replace(/[\u0080-\uffff]/g, "?");
  const tokens: Token[] = [];
  const nodes: Node[] = [];
  const bodies: Body[] = [];
  for (const statement of splitStatements(ascii)) {
    if (!/^create\s+(or\s+replace\s+)?(function|view)\b/i.test(statement.text)) continue;
    const lexed = lex(statement.text, statement.start);
    const quoted = lexed.find(({ text: token }) => token.startsWith("$"));
    collect(parseSync(statement.text), statement.start, nodes);
    const end = { start: statement.end, end: statement.end, text: ";", depth: 0 };
    if (quoted === undefined) {
      tokens.push(...lexed, end);
      const atomic = statement.text.search(/^begin atomic\b/im);
      if (atomic !== -1) bodies.push({ start: statement.start + atomic, end: statement.end, isPlPgSql: false });
      continue;
    }
    const mark = quoted.text.indexOf("$", 1) + 1;
    const body = { start: quoted.start + mark, end: quoted.end - mark };
    const source = ascii.slice(body.start, body.end);
    tokens.push(...lex(source, body.start), end);
    const isPlPgSql = /\blanguage\s+plpgsql\b/i.test(statement.text);
    bodies.push({ ...body, isPlPgSql });
    if (isPlPgSql) collectPlPgSql(statement, body, source, nodes);
    else collect(parseSync(source), body.start, nodes);
  }
  setDepths(tokens);
  return { text, tokens, nodes, bodies };
}

interface Statement {
  start: number;
  end: number;
  text: string;
}

/** The top statements of the file, without the comments before them. */
function splitStatements(text: string): Statement[] {
  const { stmts = [] } = parseSync(text) as { stmts?: { stmt_location?: number; stmt_len?: number }[] };
  return stmts.map(({ stmt_location: from = 0, stmt_len: length }) => {
    const whole = text.slice(from, length ? from + length : text.length);
    const blank = /^(\s|--.*\n)*/.exec(whole)![0].length;
    return { start: from + blank, end: from + whole.length, text: whole.slice(blank) };
  });
}

function lex(text: string, offset: number): Token[] {
  return scanSync(text)
    .tokens.filter(({ tokenName }) => tokenName !== "SQL_COMMENT" && tokenName !== "C_COMMENT")
    .map(({ start, end }) => ({
      start: start + offset,
      end: end + offset,
      text: text.slice(start, end).toLowerCase(),
      depth: 0,
    }));
}

function setDepths(tokens: Token[]): void {
  let depth = 0;
  tokens.forEach((token, index) => {
    const previous = tokens[index - 1]?.text;
    const next = tokens[index + 1]?.text ?? "";
    // `end if`, `end loop` and `end case` end PL/pgSQL statements.
    const closes = [")", "]"].includes(token.text) || (token.text === "end" && !["if", "loop"].includes(next));
    const opens = ["(", "[", "begin"].includes(token.text) || (token.text === "case" && previous !== "end");
    if (closes) depth -= 1;
    token.depth = depth;
    if (opens) depth += 1;
  });
}

/** Collects the nodes that have a place. Options of a function, such as its settings, are no code. */
function collect(tree: unknown, offset: number, nodes: Node[]): void {
  if (Array.isArray(tree)) for (const one of tree) collect(one, offset, nodes);
  if (typeof tree !== "object" || tree === null || Array.isArray(tree)) return;
  for (const [type, value] of Object.entries(tree)) {
    if (type === "options" || type === "parameters" || typeof value !== "object" || value === null) continue;
    const { location } = value as { location?: number };
    if (/^[A-Z]/.test(type) && location !== undefined && location >= 0)
      nodes.push({ type, fields: value as Record<string, unknown>, at: location + offset });
    collect(value, offset, nodes);
  }
}

/** Collects the nodes of each expression and statement in a PL/pgSQL body. */
function collectPlPgSql(
  statement: Statement,
  body: { start: number; end: number },
  source: string,
  nodes: Node[],
): void {
  for (const { query, parseMode, line } of listQueries(parsePlPgSql(statement, body))) {
    const lines = source.split("\n");
    const after = lines.slice(0, line - 1).join("\n").length;
    // The parser puts `SELECT` in place of `perform`.
    const bare = query.replace(/^\s*SELECT\b/, "");
    const found = find(source, query, after) ?? find(source, bare, after);
    if (found === null) continue;
    const used = find(source, query, after) === null ? bare : query;
    // The target of an assignment is no expression.
    const target = parseMode >= 3 ? (/^[^:=]*:?=\s*/.exec(used)?.[0].length ?? 0) : 0;
    const isStatement = parseMode === 0 && used === query;
    const prefix = isStatement ? "" : "select ";
    collect(parseSync(prefix + used.slice(target)), body.start + found + target - prefix.length, nodes);
  }
}

export function parsePlPgSql(statement: { text: string; start: number }, body: { start: number }): unknown {
  // This parser knows no types and refuses arrays of composites as results.
  const head = statement.text.slice(0, body.start - statement.start).replaceAll("[]", "  ");
  return parsePlPgSQLSync(head + statement.text.slice(head.length));
}

interface Query {
  query: string;
  parseMode: number;
  /** The line of the body in which its statement begins. */
  line: number;
}

function listQueries(tree: unknown, line = 1): Query[] {
  if (Array.isArray(tree)) return tree.flatMap((one) => listQueries(one, line));
  if (typeof tree !== "object" || tree === null) return [];
  const { query, parseMode = 0, lineno = line } = tree as Partial<Query> & { lineno?: number };
  if (typeof query === "string") return [{ query, parseMode, line }];
  return Object.values(tree).flatMap((value) => listQueries(value, lineno));
}

/** Where the query is in the source. The parser puts blanks in place of `into v_target`. */
function find(source: string, query: string, from: number): number | null {
  const isAt = (at: number): boolean => {
    for (let i = 0; i < query.length; i += 1) if (query[i] !== " " && query[i] !== source[at + i]) return false;
    return true;
  };
  for (let at = from; at + query.length <= source.length; at += 1) if (isAt(at)) return at;
  return null;
}

// Reads an SQL file with PostgreSQL's own lexer and parsers (libpg-query): the tokens of its statements and function
// bodies, and the nodes of the syntax trees, with their places in the file.
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

export interface SqlSource {
  text: string;
  tokens: Token[];
  nodes: Node[];
  statements: Statement[];
  /** Where the bodies of functions in PL/pgSQL are. */
  bodies: { start: number; end: number }[];
}

/** Functions and views. */
export const code = /^create\s+(or\s+replace\s+)?(function|view)\b/i;
/** What else a migration makes that has rules or speed. */
export const schema = /^(create\s+(unique\s+)?(table|domain|index|trigger|constraint\s+trigger)|alter\s+table)\b/i;

/** Reads the statements that match. Throws when PostgreSQL would not parse the file. */
export function readSql(text: string, statements: RegExp): SqlSource {
  // The parser counts bytes. Other characters occur only in comments and strings.
  const ascii = text.replace(/[\u0080-\uffff]/g, "?");
  const source: SqlSource = { text, tokens: [], nodes: [], statements: [], bodies: [] };
  for (const statement of splitStatements(ascii)) {
    if (!statements.test(statement.text)) continue;
    source.statements.push(statement);
    collect(parseSync(statement.text), statement.start, source.nodes);
    let tokens = lex(statement.text, statement.start);
    const quoted = tokens.find(({ text: token }) => token.startsWith("$"));
    if (quoted !== undefined) {
      const mark = quoted.text.indexOf("$", 1) + 1;
      const body = { start: quoted.start + mark, end: quoted.end - mark };
      const bodyText = ascii.slice(body.start, body.end);
      tokens = lex(bodyText, body.start);
      if (/\blanguage\s+plpgsql\b/i.test(statement.text)) {
        source.bodies.push(body);
        collectPlPgSql(statement, body.start, bodyText, source.nodes);
      } else collect(parseSync(bodyText), body.start, source.nodes);
    }
    source.tokens.push(...tokens, { start: statement.end, end: statement.end, text: ";", depth: 0 });
  }
  setDepths(source.tokens);
  return source;
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
  for (const [type, value] of Object.entries(tree as object)) {
    if (type === "options" || type === "parameters" || typeof value !== "object" || value === null) continue;
    const { location } = value as { location?: number };
    if (/^[A-Z]/.test(type) && location !== undefined && location >= 0)
      nodes.push({ type, fields: value as Record<string, unknown>, at: location + offset });
    collect(value, offset, nodes);
  }
}

/** Collects the nodes of each expression and statement in a PL/pgSQL body, which begins at `start`. */
function collectPlPgSql(statement: Statement, start: number, body: string, nodes: Node[]): void {
  // This parser knows no types and refuses arrays of composites as results.
  const head = statement.text.slice(0, start - statement.start).replaceAll("[]", "  ");
  const tree = parsePlPgSQLSync(head + statement.text.slice(head.length));
  const lines = body.split("\n");
  for (const { query, parseMode, line } of listQueries(tree)) {
    const after = lines.slice(0, line - 1).join("\n").length;
    // The parser puts `SELECT` in place of `perform`.
    const bare = query.replace(/^\s*SELECT\b/, "");
    const written = find(body, query, after) === -1 ? bare : query;
    const found = find(body, written, after);
    if (found === -1) continue;
    // The target of an assignment is no expression.
    const target = parseMode >= 3 ? (/^[^:=]*:?=\s*/.exec(written)?.[0].length ?? 0) : 0;
    const prefix = parseMode === 0 && written === query ? "" : "select ";
    collect(parseSync(prefix + written.slice(target)), start + found + target - prefix.length, nodes);
  }
}

/** `line` is that of the body in which the statement of a query begins. */
type Query = { query: string; parseMode: number; line: number };

function listQueries(tree: unknown, line = 1): Query[] {
  if (typeof tree !== "object" || tree === null) return [];
  const { query, parseMode = 0, lineno = line } = tree as Partial<Query> & { lineno?: number };
  if (typeof query === "string") return [{ query, parseMode, line }];
  return Object.values(tree).flatMap((value) => listQueries(value, lineno));
}

/** Where the query is in the text. The parser puts blanks in place of `into v_target`. */
function find(text: string, query: string, from: number): number {
  const pattern = query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll(" ", "[^]");
  const found = text.slice(from).search(new RegExp(pattern));
  return found === -1 ? -1 : found + from;
}

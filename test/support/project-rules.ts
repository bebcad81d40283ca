// The project rules that no linter knows; `npm run check` applies them. oxlint, knip and Prettier do the rest.
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { codeSchemas } from "../../src/migration/db-files.ts";
import { root } from "./copy.ts";

type SourceFile = {
  /** From the root of the project. */
  path: string;
  text: string;
};

/** Finds breaches, each by its place in the text. `code` is the text without its comments. */
type Check = (code: string, file: SourceFile, all: SourceFile[]) => [index: number, message: string][];

const clientPackage = "clients/typescript/src/index.ts";

/** The floors of src, from the top down. A file or folder imports only from itself and from the floors below it. */
const floors = [
  ["coupon.ts"],
  ["start.ts"],
  ["console.ts"],
  ["serve.ts", "commands", "console/pages"],
  ["work.ts", "http/routes", "http/openapi", "console"],
  ["http", "migration"],
  ["worker/tasks"],
  ["gate", "worker", "embedded"],
  ["database", "crypto", "server", "command-line"],
  ["common", "config", "formats"],
];

/** The first words of function names. is_, has_ and may_ begin the name of a predicate. Add a verb when you need it. */
const verbs = new Set(
  `add allocate analyze append apply build cancel check claim clear close compute confirm count create decide delete
    derive describe destroy disable enable end expire export extend find finish forget format free get hand has hold
    identify insert is join keep lapse lease list lock make mark may measure mint move note open parse perform post
    prune pull query read recall record redeem refuse register release remove render replay require reset restore
    resume reverse revoke rotate run sequence set share spend split succeed summarize suspend take test try update
    use validate void write`
    .trim()
    .split(/\s+/),
);

const rules: [files: RegExp, check: Check][] = [
  // The driver may send the BEGIN to another connection than the statements after it.
  [/^src\/(?!migration\/)/, forbid(/\bsql\w*\.begin\(|['"`]\s*begin\b/i, "only src/migration opens transactions")],
  [/^src\//, checkFloors],
  [/^src\/.*\.ts$/, checkSimilarNames],
  [/\.sql$/, forbid(/\bwhen\s+others\b/i, "never when others")],
  [/\.sql$/, forbid(/\bdrop\b.*\bcascade\b/i, "no drop … cascade")],
  [/\.sql$/, forbid(/\bas\s+enum\b/i, "no enum types")],
  [
    /^db\/(code|migrations)\//,
    forbid(/\bexecute\s+(?!function\b|procedure\b|on\b|format\('analyze )/i, "no dynamic SQL"),
  ],
  [/^db\/(code|migrations)\/.*\.sql$/, checkFunctions],
  [/^db\/(code|migrations)\/.*\.sql$/, (code) => (countLines(code) > 251 ? [[0, "has more than 250 lines"]] : [])],
  [/^db\/code\//, checkCodeFile],
  [/^db\/migrations\//, checkPair],
  [
    /^db\/migrations\/.*\.sql$/,
    forbid(new RegExp(`\\b(${codeSchemas.join("|")})\\.\\w`), "tables never depend on replaceable code"),
  ],
  [
    /^db\/migrations\/.*\.sql$/,
    forbid(/\badd\s+(column\s+)?\w+\s+core\.\w/i, "a column of a domain rewrites its table: add it with a base type"),
  ],
  [/./, checkColumns],
];

/** Reads the whole project. Generated files follow no rules. */
export function readProject(): SourceFile[] {
  const patterns = ["*.{ts,js,md}", "{src,test,db,docs,clients}/**/*.{ts,js,sql,md,sh,py,http}"];
  return patterns.flatMap(findFiles).filter((file) => file.path !== "db/tables.sql");
}

/** Takes a pattern from the root of the project. */
function findFiles(pattern: string): SourceFile[] {
  const exclude = (name: string): boolean => /(^|\/)(node_modules|dist|generated)$/.test(name);
  return globSync(pattern, { cwd: root, exclude })
    .sort()
    .map((name) => ({ path: name, text: readFileSync(path.join(root, name), "utf8") }));
}

/** Blanks the comments of SQL or TypeScript. What is left keeps its place. */
function withoutComments({ path: name, text }: SourceFile): string {
  const comment = name.endsWith(".sql")
    ? /--.*|^comment on [^;]*?'(?:[^']|'')*';/gm
    : /(?<=^|\s)\/\/.*|\/\*[^]*?\*\//gm;
  return text.replace(comment, (match) => match.replace(/[^\n]/g, " "));
}

// import … from "./d.ts", export … from "./d.ts", import "./d.ts", import("./d.ts")
const anyImport = /\b(?:(?:import|export)\s[\w*{][^"';]*?\sfrom|import\s*\(?)\s*["'](?<from>\.[^"']+)["']/g;

/** The other files of the project that a file imports, statically or dynamically, and where. */
function readImports(file: SourceFile): { target: string; index: number }[] {
  return [...withoutComments(file).matchAll(anyImport)].map(({ groups, index }) => ({
    target: path.posix.join(path.posix.dirname(file.path), groups!["from"]!),
    index,
  }));
}

/** Returns each breach as `file:line: message`. */
export function findBreaches(all: SourceFile[]): string[] {
  return all.flatMap((file) => {
    const code = withoutComments(file);
    return rules
      .filter(([files]) => files.test(file.path))
      .flatMap(([, check]) => check(code, file, all))
      .map(([index, message]) => `${file.path}:${countLines(file.text.slice(0, index))}: ${message}`);
  });
}

const countLines = (text: string): number => text.split("\n").length;

function forbid(pattern: RegExp, message: string): Check {
  const all = new RegExp(pattern, `${pattern.flags}g`);
  return (code) => [...code.matchAll(all)].map(({ index }) => [index, message]);
}

function checkFloors(_: string, file: SourceFile): [number, string][] {
  const from = findFloor(file.path);
  if (from === null) return [[0, "is in no folder of the floors in project-rules.ts"]];
  return readImports(file).flatMap(({ target, index }) => {
    // The client is a package: only commands, which are clients of the service, use it.
    if (target === clientPackage && from.folder === "commands") return [];
    if (!target.startsWith("src/")) return [[index, `imports ${target}: src imports only from src`]];
    const to = findFloor(target);
    if (to === null || to.folder === from.folder || to.floor > from.floor) return [];
    return [[index, `imports ${target}: ${from.folder} may not import from ${to.folder}, which is not below it`]];
  });
}

function findFloor(name: string): { folder: string; floor: number } | null {
  const inside = name.slice("src/".length);
  const folder = inside.includes("/") ? path.posix.dirname(inside) : inside;
  const floor = floors.findIndex((folders) => folders.includes(folder));
  return floor === -1 ? null : { folder, floor };
}

/** No two names in src differ only by an s. */
function checkSimilarNames(_: string, file: SourceFile, all: SourceFile[]): [number, string][] {
  const wanted = path.posix.basename(file.path).replace(/\.ts$/, "s.ts");
  return all
    .filter((other) => other.path.startsWith("src/") && path.posix.basename(other.path) === wanted)
    .map((other) => [0, `the name differs from that of ${other.path} only by an s`]);
}

/** A file in db/code creates one function or view: the one that its folder and name say, with a comment. */
function checkCodeFile(code: string, { path: file, text }: SourceFile): [number, string][] {
  const [schema, ...folders] = file.slice("db/code/".length, -".sql".length).split("/");
  const name = `${schema}.${folders.at(-1)}`;
  const made = [...code.matchAll(/^create\s+(or replace\s+)?(\w+)\s+([\w.]+)/gim)];
  const isAlone = made.length === 1 && /^(function|view)$/i.test(made[0]![2]!) && made[0]![3] === name;
  const breaches: [number, string][] = [];
  if (!isAlone) breaches.push([0, `makes ${made.map((match) => match[3]).join(", ") || "nothing"}, not just ${name}`]);
  if (made.some((match) => match[1] === undefined)) breaches.push([0, 'is not "create or replace"']);
  // The console shows what breaks an invariant.
  const isForOthers = ["admin", "report"].includes(schema!) || folders[0] === "invariant";
  const hasComment = new RegExp(`^comment on (function|view) ${name.replace(".", "\\.")}\\b`, "m").test(text);
  if (isForOthers && !hasComment) breaches.push([0, `has no comment on ${name}`]);
  if (!isForOthers && !text.startsWith("--")) breaches.push([0, "does not begin with a comment"]);
  if (!isForOthers && hasComment) breaches.push([0, "has a comment on what only code uses: it begins with one"]);
  return breaches;
}

/**
 * A function states its volatility, has at most 70 lines, and in db/code its name begins with a verb. It fixes its
 * search_path if it is security definer, because all that it calls has its owner's rights, or if roles or triggers call
 * it, unless its body was parsed when it was created. Those of `api` and `rules` run inside such functions.
 */
function checkFunctions(code: string, { path: file }: SourceFile): [number, string][] {
  const functions =
    /create (?:or replace )?function\s+(\w+)\.(([a-z]+)\w*)\s*\(([^]*?)(\$\w*\$|\breturn\b(?!s)|\bbegin atomic\b)/gi;
  return [...code.matchAll(functions)].flatMap((match) => {
    const { 1: schema, 2: name, 3: verb, 4: head = "", 5: start = "", index } = match;
    const hasPath = /\bset search_path = pg_catalog, pg_temp\b/i.test(head);
    const needsPath =
      /\bsecurity definer\b/i.test(head) || (start.startsWith("$") && schema !== "api" && schema !== "rules");
    const breaches: string[] = [];
    if (!/\b(volatile|stable|immutable)\b/i.test(head)) breaches.push("does not state its volatility");
    if (needsPath && !hasPath) breaches.push("does not fix its search_path");
    if (file.startsWith("db/code/") && !verbs.has(verb!)) breaches.push(`must begin with a verb, not "${verb}"`);
    if (countLines(readFunction(code.slice(index), start)) > 70) breaches.push("has more than 70 lines");
    return breaches.map((breach): [number, string] => [index, `${schema}.${name} ${breach}`]);
  });
}

/** From its head to the end of its body: the closing dollar quote, the `end` of a block, or the first semicolon. */
function readFunction(text: string, start: string): string {
  const from = text.indexOf(start) + start.length;
  const ends: Record<string, string> = { $: start, b: "\nend;", r: ";" };
  return text.slice(0, text.indexOf(ends[start[0]!.toLowerCase()]!, from));
}

/** Every migration is a .sql and a .ts file: ley runs only .ts files and would skip a lone script. */
function checkPair(_: string, file: SourceFile, all: SourceFile[]): [number, string][] {
  const [name, extension] = file.path.split(".");
  const missing = `${name}.${extension === "sql" ? "ts" : "sql"}`;
  return all.some((other) => other.path === missing) ? [] : [[0, `has no ${missing}`]];
}

/** 100 columns in SQL, else 120. Tables, code and URLs in Markdown cannot be wrapped. */
function checkColumns(_: string, { path: file, text }: SourceFile): [number, string][] {
  const most = file.endsWith(".sql") ? 100 : 120;
  const lines = file.endsWith(".md")
    ? text.replace(/^\s*(```|~~~)[^]*?^\s*\1$|^\s*\|.*/gm, (code) => code.replace(/[^\n]/g, ""))
    : text;
  return lines.split("\n").flatMap((line, number) => {
    const columns = [...line.replace(/https?:\/\/\S+/g, "")].length;
    if (columns <= most) return [];
    const index = text.split("\n").slice(0, number).join("\n").length + 1;
    return [[index, `has ${columns} columns; the limit is ${most}`]];
  });
}

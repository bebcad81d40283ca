// The house laws that a machine can read in the text of the project. Each is a pattern that must not
// occur, or a shape that every file of a kind must have; a breach is told as file:line.
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { codeSchemas } from "../../src/migration/db-files.ts";

const root = path.resolve(import.meta.dirname, "../..");

export interface SourceFile {
  path: string;
  text: string;
}

interface Law {
  says: string;
  /** What breaks it. Looked for line by line, without comments. */
  pattern: RegExp;
  except?: string[];
}

export const typescriptLaws: Law[] = [
  { says: "only config.ts reads the environment", pattern: /\bprocess\.env\b/, except: ["src/common/config.ts"] },
  { says: "only database.ts knows the driver", pattern: /from ['"]postgres['"]/, except: ["src/database/connect.ts"] },
  { says: "pg belongs to graphile-worker alone", pattern: /from ['"]pg['"]/ },
  // The driver may send such a BEGIN to another connection than what follows it.
  {
    says: "transactions are for migrate, alone on one connection",
    pattern: /\bsql\w*\.begin\(|['"`]\s*begin\b/i,
    except: ["src/migration/migrate.ts", "src/migration/run-migrations.ts"],
  },
  { says: "imports name the .ts file", pattern: /from ['"]\.{1,2}\/[^'"]*(?<!\.ts|\.json)['"]/ },
  { says: "no barrel: import from where a thing is", pattern: /^export \* from/ },
];

export const sqlLaws: Law[] = [
  { says: "never when others", pattern: /\bwhen\s+others\b/i },
  { says: "no drop … cascade", pattern: /\bdrop\b.*\bcascade\b/i },
  { says: "no dynamic SQL", pattern: /\bexecute\s+(?!function\b|procedure\b|on\b)/i, except: ["db/roles.sql"] },
  { says: "no enum types", pattern: /\bas\s+enum\b/i },
  { says: "no tabs", pattern: /\t/ },
];

export const migrationLaws: Law[] = [
  { says: "tables never depend on replaceable code", pattern: new RegExp(`\\b(${codeSchemas.join("|")})\\.\\w`) },
  {
    says: "a column that is added has a base type: PostgreSQL rewrites the table for a domain",
    pattern: /\badd\s+(column\s+)?\w+\s+core\.\w/i,
  },
];

export function readFiles(folder: string, extension: string): SourceFile[] {
  return readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(extension))
    .sort()
    .map((name) => ({ path: `${folder}/${name}`, text: readFileSync(path.join(root, folder, name), "utf8") }));
}

export function findBreaches(): string[] {
  const sql = readFiles("db", ".sql").filter((file) => file.path !== "db/tables.sql");
  const migrations = sql.filter((file) => file.path.startsWith("db/migrations/"));
  const code = sql.filter((file) => file.path.startsWith("db/code/"));
  return [
    ...readFiles("src", ".ts").flatMap((file) => applyLaws(file, typescriptLaws)),
    ...sql.flatMap((file) => applyLaws(file, sqlLaws)),
    ...migrations.flatMap((file) => applyLaws(file, migrationLaws)),
    ...[...migrations, ...code].flatMap(checkFunctions),
    ...code.flatMap(checkCodeFile),
    ...checkMigrationPairs(),
  ];
}

export function applyLaws(file: SourceFile, laws: Law[]): string[] {
  return withoutComments(file)
    .split("\n")
    .flatMap((line, index) =>
      laws
        .filter(({ pattern, except = [] }) => !except.includes(file.path) && pattern.test(line))
        .map(({ says }) => `${file.path}:${index + 1}: ${says}`),
    );
}

/** Comments are blanked, not cut, so that line numbers hold. */
function withoutComments({ path: name, text }: SourceFile): string {
  const comment = name.endsWith(".sql")
    ? /--.*|^comment on [^;]*?'(?:[^']|'')*';/gm
    : /(?<=^|\s)\/\/.*|\/\*[^]*?\*\//gm;
  return text.replace(comment, (match) => match.replace(/[^\n]/g, ""));
}

/** How a function behaves is stated, and no caller's search_path decides what its names mean. */
export function checkFunctions(file: SourceFile): string[] {
  const heads = [
    ...withoutComments(file).matchAll(
      /create (?:or replace )?function\s+([\w.]+)\s*\([^]*?(\$\w*\$|\breturn\b(?!s)|\bbegin atomic\b)/gi,
    ),
  ];
  return heads.flatMap(({ 0: head, 1: name, 2: body = "", index }) => {
    const place = `${file.path}:${file.text.slice(0, index).split("\n").length}: ${name}`;
    return [
      ...(/\b(volatile|stable|immutable)\b/i.test(head) ? [] : [`${place} does not state its volatility`]),
      ...(/\bset search_path = pg_catalog, pg_temp\b/i.test(head) || !body.startsWith("$")
        ? []
        : [`${place} does not fix its search_path`]),
    ];
  });
}

/** One function or view a file, named as the file in the schema that is the folder, with its comment. */
export function checkCodeFile(file: SourceFile): string[] {
  const [schema, ...folders] = file.path.slice("db/code/".length, -".sql".length).split("/");
  const name = `${schema}.${folders.at(-1)}`;
  const made = [...withoutComments(file).matchAll(/^create\s+(?:or replace\s+)?(\w+)\s+([\w.]+)/gim)];
  const isAlone = made.length === 1 && made[0]![2] === name && /^(function|view)$/i.test(made[0]![1]!);
  return [
    ...(isAlone
      ? []
      : [`${file.path}:1: makes ${made.map((match) => match[2]).join(", ") || "nothing"}, not just ${name}`]),
    ...(/^create or replace /m.test(file.text) ? [] : [`${file.path}:1: is not "create or replace"`]),
    ...(new RegExp(`^comment on (function|view) ${name.replace(".", "\\.")}\\b`, "m").test(file.text)
      ? []
      : [`${file.path}:1: has no comment on ${name}`]),
  ];
}

/** ley runs .ts files only: a migration without its stub would be silently left out. */
function checkMigrationPairs(): string[] {
  const names = (extension: string): string[] =>
    readFiles("db/migrations", extension).map((file) => file.path.slice(0, -extension.length));
  const [scripts, stubs] = [names(".sql"), names(".ts")];
  return [
    ...scripts.filter((name) => !stubs.includes(name)).map((name) => `${name}.sql:1: has no .ts beside it`),
    ...stubs.filter((name) => !scripts.includes(name)).map((name) => `${name}.ts:1: has no .sql beside it`),
  ];
}

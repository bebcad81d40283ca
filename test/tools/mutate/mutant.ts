// A mutant is one small edit of one file, of the kind that a maintainer makes by mistake.
import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { root } from "../../support/copy.ts";
import type { Edit } from "./edit.ts";
import { mutateGrants, mutateSchema, mutateSql } from "./sql-operators.ts";
import { mutateTypeScript } from "./ts-operators.ts";

export interface Mutant extends Edit {
  /** Survives edits elsewhere in the file: it is made from the changed lines, not from their numbers. */
  id: string;
  file: string;
  line: number;
  /** The changed function or view as `schema.name`, or the rule or table of a migration; empty in TypeScript. */
  object: string;
  /** The changed lines, before and after, without indentation and marks. */
  before: string;
  after: string;
}

/** The files that have mutants: all, or those whose path begins with one of `only`. */
export const listFiles = (only: string[] = []): string[] =>
  globSync(["db/{code,migrations}/**/*.sql", "db/grants.sql", "{src,clients/typescript/src}/**/*.ts"], { cwd: root })
    .filter(
      (file) => !file.includes("/generated/") && (only.length === 0 || only.some((start) => file.startsWith(start))),
    )
    .sort();

export const readText = (file: string): string => readFileSync(path.join(root, file), "utf8");

export const listMutants = (files: string[]): Mutant[] =>
  files.flatMap((file) => nameMutants(file, readText(file), mutate(file, readText(file))));

function mutate(file: string, text: string): Edit[] {
  if (file.endsWith(".ts")) return mutateTypeScript(text);
  if (file === "db/grants.sql") return mutateGrants(text);
  return file.startsWith("db/code/") ? mutateSql(text) : [...mutateSql(text), ...mutateSchema(text)];
}

/** Gives each edit its ID and lines. Drops edits that change nothing, and all but one that make the same text. */
export function nameMutants(file: string, text: string, edits: Edit[]): Mutant[] {
  const seen = new Map<string, number>();
  const made = new Set<string>();
  const lines = text.split("\n");
  const mutants: Mutant[] = [];
  for (const edit of [...edits].sort((a, b) => a.start - b.start || a.end - b.end)) {
    const from = text.lastIndexOf("\n", edit.start - 1) + 1;
    const next = text.indexOf("\n", edit.end);
    const to = next === -1 ? text.length : next;
    const before = trimLines(text.slice(from, to));
    const after = trimLines(text.slice(from, edit.start) + edit.replacement + text.slice(edit.end, to));
    const line = text.slice(0, edit.start).split("\n").length;
    const place = `${line}\0${before}\0${after}`;
    if (made.has(place) || text.slice(edit.start, edit.end) === edit.replacement) continue;
    made.add(place);
    // The same line may occur several times in a file.
    const key = `${file}\0${before}\0${after}`;
    const count = seen.get(key) ?? 0;
    seen.set(key, count + 1);
    mutants.push({
      ...edit,
      isEquivalent: edit.isEquivalent || isMarked(lines, line, edit, text.slice(edit.start, edit.end)),
      id: digest(`${key}\0${count}`),
      file,
      line,
      object: file.endsWith(".sql") ? findObject(text.slice(0, edit.end)) : "",
      before,
      after,
    });
  }
  return mutants;
}

const mark = /\s*(?:--|\/\/) equivalent mutant \((.+?)\): \S.*$/;

/**
 * Whether a mark at the end of the line, or alone on the line above, names the operator. Behind the operator may stand
 * what is replaced, or what replaces it: `-- equivalent mutant (boundary, condition true): why`.
 */
function isMarked(lines: string[], line: number, { operator, replacement }: Edit, replaced: string): boolean {
  const above = lines[line - 2] ?? "";
  const found = mark.exec(lines[line - 1]!) ?? (above.replace(mark, "") === "" ? mark.exec(above) : null);
  const marked = found?.[1]?.split(", ") ?? [];
  return [operator, `${operator} ${replaced}`, `${operator} ${replacement}`].some((one) => marked.includes(one));
}

const head = /^create (?:or replace |unique |constraint )?(?:function|view|table|domain|index|trigger) ([\w.]+)/;
// It ends with its item of the table.
const constraint = /^ *(?:add )?constraint (\w+)(?![^]*,\n {2}\S)/;
const heads = new RegExp(`${head.source}|${constraint.source}`, "gm");

export function findObject(above: string): string {
  const found = [...above.matchAll(heads)].at(-1);
  return found?.[1] ?? found?.[2] ?? "";
}

const trimLines = (text: string): string => {
  const lines = text.split("\n").map((line) => line.replace(mark, "").trim());
  return lines.filter((line) => line !== "").join("\n");
};

export const digest = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 12);

/** In an order that follows from the seed. A mutant keeps its place among the others when files change. */
export function shuffle(mutants: Mutant[], seed: string): Mutant[] {
  const keyOf = ({ id }: Mutant): string => digest(`${seed} ${id}`);
  return mutants.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

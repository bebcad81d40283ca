// The files of the project as texts, for the rules of `npm run check` and for `npm run mutate`.
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { root } from "./copy.ts";

export type SourceFile = {
  /** From the root of the project. */
  path: string;
  text: string;
};

/** Takes a pattern from the root of the project. */
export function findFiles(pattern: string): SourceFile[] {
  const exclude = (name: string): boolean => /(^|\/)(node_modules|dist|generated)$/.test(name);
  return globSync(pattern, { cwd: root, exclude })
    .sort()
    .map((name) => ({ path: name, text: readFileSync(path.join(root, name), "utf8") }));
}

/** Blanks the comments of SQL or TypeScript. What is left keeps its place. */
export function withoutComments({ path: name, text }: SourceFile): string {
  const comment = name.endsWith(".sql")
    ? /--.*|^comment on [^;]*?'(?:[^']|'')*';/gm
    : /(?<=^|\s)\/\/.*|\/\*[^]*?\*\//gm;
  return text.replace(comment, (match) => match.replace(/[^\n]/g, " "));
}

// import … from "./d.ts", export … from "./d.ts", import "./d.ts", import("./d.ts")
const anyImport = /\b(?:(?:import|export)\s[\w*{][^"';]*?\sfrom|import\s*\(?)\s*["'](?<from>\.[^"']+)["']/g;

/** The other files of the project that a file imports, statically or dynamically, and where. */
export function readImports(file: SourceFile): { target: string; index: number }[] {
  return [...withoutComments(file).matchAll(anyImport)].map(({ groups, index }) => ({
    target: path.posix.join(path.posix.dirname(file.path), groups!["from"]!),
    index,
  }));
}

// The files that the project rules read, and what a rule reports.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "../../..");

export interface SourceFile {
  /** From the root of the project. */
  path: string;
  text: string;
}

export interface Breach {
  path: string;
  /** The 1-based line. */
  line: number;
  /** The rule that is broken, and what breaks it. */
  message: string;
}

/** The files of a folder and its subfolders whose names end with `extension`, sorted by path. */
export function readFiles(folder: string, extension: string): SourceFile[] {
  if (!existsSync(path.join(root, folder))) return [];
  return readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(extension))
    .sort()
    .map((name) => readSource(path.join(folder, name)));
}

/** The files of the root folder itself. */
export function readRootFiles(extension: string): SourceFile[] {
  return readdirSync(root)
    .filter((name) => name.endsWith(extension))
    .map(readSource);
}

function readSource(name: string): SourceFile {
  return { path: name, text: readFileSync(path.join(root, name), "utf8") };
}

/** Blanks the comments of SQL or TypeScript. It keeps the line ends, so that line numbers stay right. */
export function withoutComments({ path: name, text }: SourceFile): string {
  const comment = name.endsWith(".sql")
    ? /--.*|^comment on [^;]*?'(?:[^']|'')*';/gm
    : /(?<=^|\s)\/\/.*|\/\*[^]*?\*\//gm;
  return text.replace(comment, (match) => match.replace(/[^\n]/g, ""));
}

export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

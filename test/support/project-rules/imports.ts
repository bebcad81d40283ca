// Reads imports and exports of TypeScript files, and checks that a folder imports only from folders below it.
import path from "node:path";
import { type Breach, type SourceFile, lineAt, withoutComments } from "./source-file.ts";

/** The floors of src, from the top down. A file or folder imports only from itself and from the floors below it. */
export const floors = [
  ["coupon.ts"],
  ["start.ts"],
  ["serve.ts", "commands"],
  ["work.ts", "http/routes", "http/openapi"],
  ["http", "migration"],
  ["worker/tasks"],
  ["gate", "worker", "embedded"],
  ["database", "crypto", "server"],
  ["common"],
];

const clientPackage = "clients/typescript/src/index.ts";

export interface Import {
  /** The imported file, from the root of the project. */
  target: string;
  /** The imported names; null: all of them. */
  names: string[] | null;
  line: number;
}

// import { a, type b as c } from "./d.ts", export { a } from "./d.ts", import * as a from "./d.ts"
const fromImport = /\b(?:import|export)\s+(?:type\s+)?([\w*{][^"';]*?)\s+from\s+["'](\.[^"']+)["']/;
// import "./d.ts", import("./d.ts")
const bareImport = /\bimport\s*\(?\s*["'](\.[^"']+)["']/;
const anyImport = new RegExp(`${fromImport.source}|${bareImport.source}`, "g");

/** Returns the imports of other files of the project, static and dynamic. */
export function readImports(file: SourceFile): Import[] {
  const text = withoutComments(file);
  return [...text.matchAll(anyImport)].map(({ 1: clause, 2: from, 3: bare, index }) => ({
    target: path.posix.join(path.posix.dirname(file.path), (from ?? bare)!),
    names: clause === undefined || clause.includes("*") ? null : readNames(clause),
    line: lineAt(text, index),
  }));
}

/** Returns the names in an import clause or export list, as the imported file declares them. */
function readNames(clause: string): string[] {
  const list = /\{([^}]*)\}/.exec(clause)?.[1];
  const hasDefault = /^\s*\w/.test(clause);
  const names = (list ?? "").split(",").map((name) => name.trim().replace(/^type\s+/, ""));
  return [...(hasDefault ? ["default"] : []), ...names.map((name) => name.split(/\s+as\s+/)[0]!).filter(Boolean)];
}

/** Takes a file of src. */
export function checkFloors(file: SourceFile): Breach[] {
  const from = findFloor(file.path);
  if (from === null) return [{ path: file.path, line: 1, message: "is in no folder of the floors in imports.ts" }];
  return readImports(file).flatMap(({ target, line }) => {
    // The client is a package: only commands, which are clients of the service, use it.
    if (target === clientPackage && from.folder === "commands") return [];
    if (!target.startsWith("src/")) {
      return [{ path: file.path, line, message: `imports ${target}: src imports only from src` }];
    }
    const to = findFloor(target);
    if (to === null || to.folder === from.folder || to.floor > from.floor) return [];
    const message = `imports ${target}: ${from.folder} may not import from ${to.folder}, which is not below it`;
    return [{ path: file.path, line, message }];
  });
}

function findFloor(name: string): { folder: string; floor: number } | null {
  const inside = name.slice("src/".length);
  const folder = inside.includes("/") ? path.posix.dirname(inside) : inside;
  const floor = floors.findIndex((folders) => folders.includes(folder));
  return floor === -1 ? null : { folder, floor };
}

/**
 * Every function, class and constant that one of `files` exports is imported by at least one other file of `all`. Types
 * are exempt: a signature reads better when the names of its types are exported with it.
 */
export function checkExports(files: SourceFile[], all: SourceFile[]): Breach[] {
  const used = new Map<string, Set<string> | null>();
  for (const { target, names } of all.flatMap(readImports)) {
    const known = used.get(target);
    used.set(target, names === null || known === null ? null : new Set([...(known ?? []), ...names]));
  }
  return files.flatMap((file) => {
    const names = used.get(file.path);
    if (names === null) return [];
    return readExports(file)
      .filter(({ name }) => !names?.has(name))
      .map(({ name, line }) => ({ path: file.path, line, message: `exports ${name}, which no other file imports` }));
  });
}

function readExports(file: SourceFile): { name: string; line: number }[] {
  const text = withoutComments(file);
  const declared = text.matchAll(
    /^export (?:async )?(?:abstract )?(?:function\*?|const|let|class) (\w+)|^export (default)\b/gm,
  );
  const listed = text.matchAll(/^export \{([^}]*)\}/gm);
  return [
    ...[...declared].map(({ 1: name, 2: byDefault, index }) => ({
      name: (name ?? byDefault)!,
      line: lineAt(text, index),
    })),
    ...[...listed].flatMap(({ 1: list, index }) =>
      list!
        .split(",")
        .map((item) =>
          item
            .trim()
            .split(/\s+as\s+/)
            .at(-1)!,
        )
        .filter((name) => name !== "")
        .map((name) => ({ name, line: lineAt(text, index) })),
    ),
  ];
}

// All mutants of the checkout.
import { readFileSync } from "node:fs";
import path from "node:path";
import { root } from "../support/copy.ts";
import { readFiles } from "../support/project-rules/source-file.ts";
import { type Mutant, nameMutants } from "./mutant.ts";
import { mutateSql } from "./sql-operators.ts";
import { mutateTypeScript } from "./ts-operators.ts";

/** `only`: the beginnings of paths. In migrations only functions have mutants. */
export function listMutants(only: string[] = []): Mutant[] {
  const files = [...readFiles("db/code", ".sql"), ...readFiles("db/migrations", ".sql"), ...readFiles("src", ".ts")];
  return files
    .map(({ path: file }) => file)
    .filter((file) => only.length === 0 || only.some((start) => file.startsWith(start)))
    .flatMap((file) => {
      const text = readFileSync(path.join(root, file), "utf8");
      return nameMutants(file, text, file.endsWith(".sql") ? mutateSql(text) : mutateTypeScript(text));
    });
}

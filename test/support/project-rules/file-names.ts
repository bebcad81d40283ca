// Rules about the names of files.
import path from "node:path";
import type { Breach } from "./source-file.ts";

/** Takes paths. TypeScript files have kebab-case names, SQL files in db/code have snake_case names. */
export function checkNameStyle(paths: string[]): Breach[] {
  return paths.flatMap((name) => {
    const isSql = name.startsWith("db/code/");
    const pattern = isSql ? /^[a-z][a-z0-9]*(_[a-z0-9]+)*\.sql$/ : /^[a-z0-9]+(-[a-z0-9]+)*(\.test)?\.\w+$/;
    const message = `the name must be ${isSql ? "snake_case" : "kebab-case"}`;
    return pattern.test(path.posix.basename(name)) ? [] : [{ path: name, line: 1, message }];
  });
}

/** Takes paths of src. No two names differ only by an s, so that nobody opens the wrong file. */
export function checkSimilarNames(paths: string[]): Breach[] {
  const withName = (base: string): string[] => paths.filter((name) => path.posix.basename(name, ".ts") === base);
  return paths.flatMap((name) =>
    withName(`${path.posix.basename(name, ".ts")}s`).map((other) => ({
      path: name,
      line: 1,
      message: `the name differs from that of ${other} only by an s`,
    })),
  );
}

// The project rules: what `npm run check` reads in the text of the project. oxlint checks import cycles and the
// length of TypeScript files and functions, Prettier checks the format.
import { checkNameStyle, checkSimilarNames } from "./file-names.ts";
import { checkExports, checkFloors } from "./imports.ts";
import { checkColumns, checkFileLength } from "./limits.ts";
import { checkOperations } from "./operations.ts";
import { findPatterns, migrationRules, sqlRules, typescriptRules } from "./patterns.ts";
import { type Breach, readFiles, readRootFiles } from "./source-file.ts";
import { checkCodeFile, checkFunctionLengths, checkFunctions, checkMigrationPairs, checkVerbs } from "./sql-shape.ts";
import { checkWaits } from "./waits.ts";

/** Returns the breaches by rule. */
export function findBreaches(): Record<string, Breach[]> {
  const src = readFiles("src", ".ts");
  const test = readFiles("test", ".ts");
  const stubs = readFiles("db", ".ts");
  const clients = readFiles("clients", ".ts").filter(({ path }) => !/\/(?:dist|generated|node_modules)\//.test(path));
  const typescript = [...src, ...test, ...stubs, ...clients, ...readRootFiles(".ts"), ...readRootFiles(".js")];
  // db/tables.sql is generated.
  const sql = readFiles("db", ".sql").filter((file) => file.path !== "db/tables.sql");
  const migrations = sql.filter((file) => file.path.startsWith("db/migrations/"));
  const code = sql.filter((file) => file.path.startsWith("db/code/"));
  const documents = [
    ...readRootFiles(".md"),
    ...["docs", "db", "test", "clients"].flatMap((folder) => readFiles(folder, ".md")),
  ];
  const examples = [".ts", ".js", ".sh", ".py", ".http"].flatMap((extension) => readFiles("docs", extension));
  const paths = (files: { path: string }[]): string[] => files.map((file) => file.path);
  return {
    patterns: [
      ...src.flatMap((file) => findPatterns(file, typescriptRules)),
      ...sql.flatMap((file) => findPatterns(file, sqlRules)),
      ...migrations.flatMap((file) => findPatterns(file, migrationRules)),
    ],
    "SQL functions": [...migrations, ...code].flatMap(checkFunctions),
    "SQL function names": code.flatMap(checkVerbs),
    "SQL function lengths": [...migrations, ...code].flatMap(checkFunctionLengths),
    "SQL file lengths": [...migrations, ...code].flatMap(checkFileLength),
    "SQL files": [...code.flatMap(checkCodeFile), ...checkMigrationPairs(paths([...migrations, ...stubs]))],
    columns: [...typescript, ...sql, ...documents, ...examples].flatMap(checkColumns),
    floors: src.flatMap(checkFloors),
    operations: checkOperations(
      src.filter((file) => file.path.startsWith("src/http/routes/")),
      code,
    ),
    exports: checkExports(src, typescript),
    "file names": checkNameStyle(paths([...src, ...test, ...clients, ...code, ...examples])),
    "similar names": checkSimilarNames(paths(src)),
    // The rules' own test contains examples of breaches.
    waits: test.filter(({ path }) => !path.startsWith("test/support/project-rules/")).flatMap(checkWaits),
  };
}

// The files of db in this checkout: migrations, code and scripts, and the version that they make.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";

export const databaseFolder = path.resolve(import.meta.dirname, "../../db");

/** Of a cell. A schema may use the schemas before it. */
export const codeSchemas = ["rules", "api", "gate", "jobs", "admin", "report", "console", "portal"];

/** Of a router. */
export const routerSchemas = ["router", "remote", "rules", "gate"];

/** Functions and views that a migrate loads. */
export interface Code {
  schemas: readonly string[];
  files: CodeFile[];
}

export interface CodeFile {
  schema: string;
  /** The function or view that the file makes. */
  name: string;
  /** From the root of the project, as messages show it. */
  path: string;
  text: string;
}

export const readScript = (name: string): string => readFileSync(path.join(databaseFolder, name), "utf8");

/** Names as `001-subject`, in order. */
export function listMigrations(): string[] {
  return readdirSync(path.join(databaseFolder, "migrations"))
    .filter((file) => file.endsWith(".ts"))
    .map((file) => file.slice(0, -".ts".length))
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

/** The sha256 of a migration's SQL. */
export const hashMigration = (name: string): string =>
  createHash("sha256")
    .update(readScript(`migrations/${name}.sql`))
    .digest("hex");

export const listCode = (): CodeFile[] => listFiles("code", codeSchemas);

/** That of a router, which has another database than a cell. */
export const listRouterCode = (): CodeFile[] => listFiles("router", routerSchemas);

function listFiles(parent: string, schemas: readonly string[]): CodeFile[] {
  return schemas.flatMap((schema) => {
    const folder = path.join(databaseFolder, parent, schema);
    // A schema without files has no folder, because git keeps no empty folders.
    if (!existsSync(folder)) return [];
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".sql"))
      .sort()
      .map((file) => ({
        schema,
        name: path.basename(file, ".sql"),
        path: `db/${parent}/${schema}/${file}`,
        text: readScript(`${parent}/${schema}/${file}`),
      }));
  });
}

/** `code` is a hash of everything that a migrate runs besides the migrations. */
export function expectedVersion(): { migration: string; code: string } {
  const hash = createHash("sha256");
  for (const { path: file, text } of [...listCode(), ...listRouterCode()]) hash.update(`${file}\0${text}\0`);
  hash.update(`${readScript("roles.sql")}\0${readScript("worker.sql")}\0${readScript("grants.sql")}\0`);
  hash.update(`${readScript("router/schema.sql")}\0${readScript("router/grants.sql")}\0`);
  return { migration: listMigrations().at(-1) ?? "", code: hash.digest("hex") };
}

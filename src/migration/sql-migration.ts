// Makes what every stub in db/migrations exports: `up` runs the .sql file beside the stub, and `down` is refused.
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** What a migration gets from the runner: it runs the text of an .sql file. Messages show the file's name. */
export interface MigrationClient {
  run(text: string, name: string): Promise<void>;
}

/** What a stub exports, and `isOnline` if the migration must run outside a transaction. */
export interface Migration {
  up(client: MigrationClient): Promise<void>;
  down(): never;
  /** `create index concurrently` needs this. Such a migration is one statement and safe to run again. */
  isOnline?: boolean;
}

/** `stub` is the stub's `import.meta.url`. */
export function sqlMigration(stub: string): Migration {
  const file = fileURLToPath(stub).replace(/\.ts$/, ".sql");
  return {
    up: (client) => client.run(readFileSync(file, "utf8"), path.basename(file)),
    down: () => {
      throw new Error("migrations only go forward: restore a backup instead");
    },
  };
}

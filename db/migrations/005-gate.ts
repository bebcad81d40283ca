import { readFileSync } from "node:fs";
import type { MigrationClient } from "../../src/migration/migrate.ts";

export const up = (client: MigrationClient): Promise<void> =>
  client.run(readFileSync(new URL("./005-gate.sql", import.meta.url), "utf8"), "005-gate.sql");
export const down = (): never => {
  throw new Error("migrations only go forward: restore a backup instead");
};

import { readFileSync } from "node:fs";
import type { MigrationClient } from "../../src/migration/migrate.ts";

export const up = (client: MigrationClient): Promise<void> =>
  client.run(readFileSync(new URL("./008-expiry.sql", import.meta.url), "utf8"), "008-expiry.sql");
export const down = (): never => {
  throw new Error("migrations only go forward: restore a backup instead");
};

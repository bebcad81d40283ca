import { readFileSync } from "node:fs";
import type { MigrationClient } from "../../src/migration/migrate.ts";

export const up = (client: MigrationClient): Promise<void> =>
  client.run(readFileSync(new URL("./003-coupons.sql", import.meta.url), "utf8"), "003-coupons.sql");
export const down = (): never => {
  throw new Error("migrations only go forward: restore a backup instead");
};

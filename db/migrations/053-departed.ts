import { sqlMigration } from "../../src/migration/sql-migration.ts";

export const { up, down } = sqlMigration(import.meta.url);

// The version of this checkout, and whether a database has the version that it needs.
import { readFileSync } from "node:fs";
import path from "node:path";
import { ConfigError } from "../config/config.ts";
import { sqlState } from "../database/connect.ts";
import { readVersion, type FoundVersion, type Version } from "../database/read-version.ts";
import { refuseRouter } from "../database/refuse-router.ts";
import { refuseSettings } from "../database/session-settings.ts";
import type { Database } from "../database/types.ts";
import { expectedVersion, listMigrations } from "./db-files.ts";

/** The version of this checkout, and its newest migration. */
export function readBuild(): { version: string; migration: string } {
  const file = path.resolve(import.meta.dirname, "../../package.json");
  const { version } = JSON.parse(readFileSync(file, "utf8")) as { version: string };
  return { version, migration: listMigrations().at(-1) ?? "" };
}

/** A database one version ahead is current too: functions that programs call stay for one version. */
export function isCurrent({ migration, code, ...cells }: FoundVersion, expected: Version): boolean {
  return cells.cell === cells.server_cell && migration >= expected.migration && code.split(" ").includes(expected.code);
}

/** For the start of a program: on a database of another version, it cannot work, and ends with one line. */
export async function refuseOtherVersion(asked: Promise<FoundVersion>): Promise<void> {
  const found = await asked.catch(refuseWithoutVersion);
  const expected = expectedVersion();
  if (isCurrent(found, expected)) return;
  if (found.cell !== found.server_cell)
    throw new ConfigError(
      `the database is of cell ${found.cell}, and coupon.cell of its server is ${found.server_cell}: set it to ` +
        `'${found.cell}', unless this is the copy that a split promotes (docs/scale.md)`,
    );
  throw new ConfigError(
    found.migration > expected.migration
      ? `the database is newer than this checkout: it has migration ${found.migration}, and keeps the functions of ` +
          "one version back only. Use the checkout that migrated it"
      : `the database is older than this checkout, or has other functions: it has migration ${found.migration}, ` +
          `this checkout ${expected.migration}. Run \`npm run migrate\``,
  );
}

/** For the start of a program that works in one database, which is the only one or one cell. */
export async function refuseOtherDatabase(rows: Database["rows"]): Promise<void> {
  await refuseSettings(rows);
  await refuseRouter(rows);
  await refuseOtherVersion(readVersion(rows));
}

// undefined_function, invalid_schema_name, insufficient_privilege: it has no such function, or grants no use of it yet.
function refuseWithoutVersion(error: unknown): never {
  if (!["42883", "3F000", "42501"].includes(sqlState(error) ?? "")) throw error;
  throw new ConfigError("the database is not migrated, or older than this checkout: run `npm run migrate`");
}

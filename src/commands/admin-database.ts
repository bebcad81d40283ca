// The single connection of a command: acts as coupon_admin and closes when the command ends.
import { ConfigError } from "../config/config.ts";
import type { Address } from "../config/database-address.ts";
import { connect, sqlState } from "../database/connect.ts";
import { listRouterCells, refuseRouter } from "../database/refuse-router.ts";
import { refuseSettings } from "../database/session-settings.ts";
import type { Database } from "../database/types.ts";
import { readVersion } from "../database/read-version.ts";
import { refuseOtherVersion } from "../migration/version.ts";
import { fingerprintKeys, refuseWrongKeys, type KeyProblem } from "../crypto/key-fingerprint.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import { listCellAddresses, type Route } from "./find-cell.ts";

/** `name` is shown in pg_stat_activity. `route`: if the address is a router, it leads to one of the cells. */
export async function withAdminDatabase<T>(
  address: Address,
  name: string,
  run: (database: Database) => Promise<T>,
  route?: Route,
): Promise<T> {
  const database = connect(address, { name, role: "coupon_admin", max: 1 });
  try {
    await refuseSettings(database.rows);
    if (route !== undefined && (await listRouterCells(database.rows)) !== null) {
      const cells = await listCellAddresses(database, address);
      return await route(cells, (cell) => withAdminDatabase(cell, name, run));
    }
    await refuseRouter(database.rows);
    await refuseOtherVersion(readVersion(database.rows));
    return await run(database).catch(explainStandby);
  } finally {
    await database.end();
  }
}

// read_only_sql_transaction. What only reads works on a standby.
function explainStandby(error: unknown): never {
  if (sqlState(error) !== "25006") throw error;
  throw new ConfigError("DATABASE_URL is a standby, which takes no writes: run this command on the primary");
}

/** Refuses keys that the database was not used with. A command calls this before it uses keys. */
export async function checkKeys(database: Database, keys: MasterKeys): Promise<void> {
  const text = "select version, problem from rules.register_keys($1::text::jsonb)";
  refuseWrongKeys(keys, await database.rows<KeyProblem>(text, [fingerprintKeys(keys)]));
}

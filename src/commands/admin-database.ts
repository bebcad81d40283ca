// The single connection of a command: acts as coupon_admin and closes when the command ends.
import type { Address } from "../config/database-address.ts";
import { connect } from "../database/connect.ts";
import { refuseSettings } from "../database/session-settings.ts";
import type { Database } from "../database/types.ts";
import { readVersion } from "../database/read-version.ts";
import { refuseOtherVersion } from "../migration/version.ts";
import { fingerprintKeys, refuseWrongKeys, type KeyProblem } from "../crypto/key-fingerprint.ts";
import type { MasterKeys } from "../crypto/keys.ts";

/** `name` is shown in pg_stat_activity. */
export async function withAdminDatabase<T>(
  address: Address,
  name: string,
  run: (database: Database) => Promise<T>,
): Promise<T> {
  const database = connect(address, { name, role: "coupon_admin", max: 1 });
  try {
    await refuseSettings(database.rows);
    await refuseOtherVersion(readVersion(database.rows));
    return await run(database);
  } finally {
    await database.end();
  }
}

/** Refuses keys that the database was not used with. A command calls this before it uses keys. */
export async function checkKeys(database: Database, keys: MasterKeys): Promise<void> {
  const text = "select version, problem from rules.register_keys($1::text::jsonb)";
  refuseWrongKeys(keys, await database.rows<KeyProblem>(text, [fingerprintKeys(keys)]));
}

// The version of a database: its newest migration, and the hash of its functions; and which cell it is.
import type { Database } from "./types.ts";

/** code: after a space, the hash of the previous version too, whose programs can still run. */
export type Version = { migration: string; code: string };
/** server_cell: coupon.cell of the server. If cell differs, the database is a copy, or the server lost the setting. */
export type FoundVersion = Version & { cell: number; server_cell: number };

export async function readVersion(rows: Database["rows"]): Promise<FoundVersion> {
  const [version] = await rows<FoundVersion>("select migration, code, cell, server_cell from rules.read_version()");
  if (version === undefined) throw new Error("rules.read_version returned no row");
  return version;
}

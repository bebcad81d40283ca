// The version of a database: its newest migration, and the hash of its functions.
import type { Database } from "./types.ts";

/** code: after a space, the hash of the previous version too, whose programs can still run. */
export type Version = { migration: string; code: string };

export async function readVersion(rows: Database["rows"]): Promise<Version> {
  const [version] = await rows<Version>("select migration, code from rules.read_version()");
  if (version === undefined) throw new Error("rules.read_version returned no row");
  return version;
}

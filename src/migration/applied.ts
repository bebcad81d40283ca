// What a database already has: its migrations and the version of its functions. Reading changes nothing.
import type { Address } from "../common/database-address.ts";
import { openSession } from "../database/connect.ts";
import type { Session } from "../database/types.ts";
import { expectedVersion, listMigrations } from "./db-files.ts";

export interface Applied {
  migrations: { name: string; at: Date }[];
  /** The sha256 of db/code and the scripts beside it; null if nothing was loaded yet. */
  code: string | null;
}

export async function readApplied(session: Session): Promise<Applied> {
  const exists = await session.rows(
    `select from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'core' and c.relname = 'migration'`,
  );
  if (exists.length === 0) return { migrations: [], code: null };
  await session.run("set role coupon_owner");
  const migrations = await session.rows<{ name: string; at: Date }>(
    "select name, applied_at as at from core.migration order by position",
  );
  const code = await session.rows<{ sha256: string }>("select sha256 from core.code_version where is_current");
  await session.run("reset role");
  return { migrations, code: code[0]?.sha256 ?? null };
}

export interface Status extends Applied {
  pending: string[];
  /** Applied, but not in this checkout: the database is newer. */
  unknown: string[];
  isCodeCurrent: boolean;
}

export async function readStatus(address: Address): Promise<Status> {
  const session = openSession(address, { name: "coupon migrate" });
  try {
    const applied = await readApplied(session);
    const names = applied.migrations.map(({ name }) => name);
    const known = listMigrations();
    return {
      ...applied,
      pending: known.filter((name) => !names.includes(name)),
      unknown: names.filter((name) => !known.includes(name)),
      isCodeCurrent: applied.code === expectedVersion().code,
    };
  } finally {
    await session.end();
  }
}

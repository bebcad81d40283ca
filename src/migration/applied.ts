// What a database already has: its migrations and the version of its functions. Reading changes nothing.
import type { Address } from "../config/database-address.ts";
import { openSession } from "../database/connect.ts";
import { refuseRouter } from "../database/refuse-router.ts";
import type { Session } from "../database/types.ts";
import { expectedVersion, hashMigration, listMigrations } from "./db-files.ts";

export interface Applied {
  /** sha256: of the SQL that ran; null in a database that recorded none. */
  migrations: { name: string; at: Date; sha256: string | null }[];
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
  const migrations = await session.rows<Applied["migrations"][number]>(
    "select name, applied_at as at, to_jsonb(m) ->> 'sha256' as sha256 from core.migration m order by position",
  );
  const code = await session.rows<{ sha256: string }>("select sha256 from core.code_version where is_current");
  await session.run("reset role");
  return { migrations, code: code[0]?.sha256 ?? null };
}

/** Throws if the database was made by migrations that have the same names as in this checkout, but other SQL. */
export function refuseOtherText({ migrations }: Applied): void {
  const known = new Set(listMigrations());
  const others = migrations.filter(({ name, sha256 }) => known.has(name) && sha256 !== hashMigration(name));
  if (others.length === 0) return;
  throw new Error(
    `this database was made by other SQL than this checkout has in db/migrations/${others[0]!.name}.sql` +
      `${others.length > 1 ? ` and ${others.length - 1} more` : ""}: ` +
      "use the checkout that made it, or a new database",
  );
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
    await refuseRouter(session.rows);
    const applied = await readApplied(session);
    refuseOtherText(applied);
    const names = applied.migrations.map(({ name }) => name);
    const known = listMigrations();
    return {
      ...applied,
      pending: known.filter((name) => !names.includes(name)),
      unknown: names.filter((name) => !known.includes(name)),
      isCodeCurrent: applied.code === expectedVersion().code,
    };
  } finally {
    // equivalent mutant (await): the callers only print, and then exit
    await session.end();
  }
}

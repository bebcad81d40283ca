// Recognises the database of a router (docs/scale.md), which only serve and some commands can use.
import { ConfigError } from "../config/config.ts";
import type { Database } from "./types.ts";

/** The numbers of its cells. null: the database is no router. Any role may ask. */
export async function listRouterCells(rows: Database["rows"]): Promise<string | null> {
  // to_regclass would fail for a role without rights in the schema.
  const [router] = await rows<{ cells: string }>(
    `select coalesce((
       select string_agg(n.number::text, ', ' order by n.number)
       from pg_foreign_server s
       join pg_foreign_data_wrapper w on w.oid = s.srvfdw
       cross join lateral (select substring(s.srvname from '^cell_([0-9]+)$')::int) n (number)
       where w.fdwname = 'cells'), 'none yet') as cells
     from pg_class c
     join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'router' and c.relname = 'version'`,
  );
  return router?.cells ?? null;
}

/** For what works in one cell. */
export async function refuseRouter(rows: Database["rows"], advice = "give the URL of one"): Promise<void> {
  const cells = await listRouterCells(rows);
  if (cells === null) return;
  throw new ConfigError(
    `DATABASE_URL is a router (cells: ${cells}): ${advice}; \`coupon cells list\` says where they are`,
  );
}

// Reads PostgreSQL's catalog of a freshly migrated database as a superuser.
import type { Test } from "tap";
import { connect } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { codeSchemas } from "../../src/migration/db-files.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { createEmptyDatabase } from "./database.ts";

export const ourSchemas = ["core", ...codeSchemas];

/** The roles that programs and people use. None of them owns anything. */
export const ourRoles = ["coupon_api", "coupon_worker", "coupon_report", "coupon_admin"];

/**
 * The functions of rules that views call. A view calls functions as its reader, so its readers may execute them. They
 * cannot call them directly, because they lack usage on the schema.
 */
export const calledByViews = `
  select d.refobjid as oid from pg_rewrite r
  join pg_class c on c.oid = r.ev_class and c.relnamespace in ('report'::regnamespace, 'rules'::regnamespace)
  join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
    and d.refclassid = 'pg_proc'::regclass
  join pg_proc p on p.oid = d.refobjid and p.pronamespace = 'rules'::regnamespace`;

export type Catalog = {
  login: Database;
  /** The column `name` of each row. */
  names(text: string, params?: unknown[]): Promise<string[]>;
};

export async function openCatalog(t: Test): Promise<Catalog> {
  // Not a clone of the template: a clone lacks the rights on the database itself.
  const { address, drop } = await createEmptyDatabase();
  await migrate(address);
  const login = connect(address, { name: "coupon test", max: 1 });
  t.teardown(async () => {
    await login.end();
    await drop();
  });
  return {
    login,
    names: async (text, params = []) => (await login.rows<{ name: string }>(text, params)).map(({ name }) => name),
  };
}

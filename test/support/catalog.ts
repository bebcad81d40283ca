// Everything that a migrate could leave behind: objects with their rights, the roles of the service, and an advisory
// lock. It leaves out what other test files may change on the same server at the same time.
import type { Address } from "../../src/config/database-address.ts";
import { openSession } from "../../src/database/connect.ts";

export async function readCatalog(address: Address): Promise<string[]> {
  const session = openSession(address, { name: "coupon test" });
  try {
    const rows = await session.rows<{ item: string }>(`
      select format('role %s', rolname) as item from pg_roles
        where rolname in ('coupon_owner', 'coupon_api', 'coupon_worker', 'coupon_report', 'coupon_admin',
          'coupon_console', 'coupon_portal')
      union all select format('database %s %s', datname, datacl::text)
        from pg_database where datname = current_database()
      union all select format('schema %s %s', nspname, nspacl::text) from pg_namespace where nspname !~ '^pg_'
      union all select format('relation %s %s %s', c.oid, c.oid::regclass, c.relacl::text)
        from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname !~ '^pg_'
      union all select format('column %s.%s', a.attrelid::regclass, a.attname)
        from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
        where n.nspname !~ '^pg_' and a.attnum > 0
      union all select format('function %s %s %s', p.oid::regprocedure, p.xmin, p.proacl::text)
        from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname !~ '^pg_'
      union all select format('constraint %s %s', conrelid::regclass, conname) from pg_constraint
      union all select format('comment %s %s', objoid, description) from pg_description where objoid >= 16384
      union all select format('advisory lock of %s', application_name)
        from pg_locks join pg_stat_activity using (pid)
        where locktype = 'advisory' and application_name = 'coupon migrate' and datname = current_database()
      order by 1`);
    return rows.map(({ item }) => item);
  } finally {
    await session.end();
  }
}

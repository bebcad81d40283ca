// What each database role may do, read from PostgreSQL's catalog. A new table or function is covered without a change
// here.
import t from "tap";
import { calledByViews, openCatalog, ourSchemas, type Catalog } from "../support/fresh-database.ts";

// Each role may call all functions of these schemas, those that several programs share, and no others.
const rights: Record<string, string[]> = {
  coupon_api: ["gate"],
  coupon_worker: ["jobs", "graphile_worker"],
  coupon_report: ["report"],
  coupon_admin: ["admin", "report"],
};
const roles = Object.keys(rights);
const shared = ["rules.register_keys", "rules.read_statement_page"];
const sharing = ["coupon_api", "coupon_worker", "coupon_admin"];

let login: Catalog["login"];
let names: Catalog["names"];
t.before(async () => {
  ({ login, names } = await openCatalog(t));
});

t.test("Only the owner has rights on the tables, columns and sequences of core", async (t) => {
  for (const role of [...roles, "public"]) {
    const found = await names(
      `select format('%s on %s', p.privilege, c.relname) as name
       from pg_class c
       cross join unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger'])
         p (privilege)
       where c.relnamespace = 'core'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
         and (has_table_privilege($1, c.oid, p.privilege)
              or (p.privilege in ('select', 'insert', 'update', 'references')
                  and has_any_column_privilege($1, c.oid, p.privilege)))
       union all
       select format('%s on %s', p.privilege, c.relname)
       from pg_class c cross join unnest(array['usage', 'select', 'update']) p (privilege)
       where c.relnamespace = 'core'::regnamespace and c.relkind = 'S'
         and has_sequence_privilege($1, c.oid, p.privilege)`,
      [role],
    );
    t.strictSame(found, [], role);
  }
});

t.test("Every table of core refuses every statement of every role", async (t) => {
  const tables = await login.rows<{ name: string; column: string }>(
    `select c.relname as name, a.attname as column
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum = 1
     where c.relnamespace = 'core'::regnamespace and c.relkind = 'r' order by 1`,
  );
  t.ok(tables.length > 20);
  for (const role of roles) {
    const refused: string[] = [];
    await login.rows(`set role ${role}`);
    for (const { name, column } of tables) {
      for (const text of [
        `select from core.${name}`,
        `insert into core.${name} default values`,
        `update core.${name} set ${column} = default`,
        `delete from core.${name}`,
        `truncate core.${name}`,
      ]) {
        // 42501: insufficient privilege.
        await login.rows(text).catch((error: { code: string }) => refused.push(error.code));
      }
    }
    await login.rows("reset role");
    t.strictSame(refused, Array(tables.length * 5).fill("42501"), role);
  }
});

t.test("A role may call the functions of its schemas and no others", async (t) => {
  const all = await login.rows<{ oid: number; schema: string; name: string }>(
    `select p.oid::int, n.nspname as schema, p.proname as name
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where n.nspname = any ($1) or n.nspname = 'graphile_worker'`,
    [ourSchemas],
  );
  t.ok(all.length > 100);
  const needed = await names(
    `select distinct p.oid::regproc::text as name from pg_proc p where p.oid in (${calledByViews}) order by 1`,
  );
  for (const [role, schemas] of Object.entries(rights)) {
    const callable = await login.rows<{ oid: number }>(
      `select p.oid::int from pg_proc p
       where has_function_privilege($1, p.oid, 'execute') and has_schema_privilege($1, p.pronamespace, 'usage')`,
      [role],
    );
    const callableOids = new Set(callable.map(({ oid }) => oid));
    const isSharing = sharing.includes(role);
    const others = [...(isSharing ? shared : []), ...(schemas.includes("report") ? needed : [])].toSorted();
    const mayCall = (schema: string, name: string) =>
      schemas.includes(schema) || (isSharing && others.includes(`${schema}.${name}`));
    const wrong = all.filter(({ oid, schema, name }) => callableOids.has(oid) !== mayCall(schema, name));
    t.strictSame(wrong, [], role);
    const granted = await names(
      `select n.nspname || '.' || p.proname as name
       from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where n.nspname = any ($2) and not n.nspname = any ($3) and has_function_privilege($1, p.oid, 'execute')
       order by 1`,
      [role, ourSchemas, schemas],
    );
    t.strictSame(granted, others, `${role} may execute what is shared, and what its views call`);
  }
});

t.test("A role may use its own schemas and create nothing", async (t) => {
  for (const [role, schemas] of Object.entries(rights)) {
    const usable = await names(
      `select nspname as name from pg_namespace
       where nspname !~ '^pg_' and nspname <> 'information_schema' and has_schema_privilege($1, oid, 'usage')
       order by 1`,
      [role],
    );
    t.strictSame(usable, [...schemas, ...(sharing.includes(role) ? ["rules"] : [])].toSorted(), role);
    const creatable = await names(
      `select nspname as name from pg_namespace
       where nspname !~ '^pg_' and has_schema_privilege($1, oid, 'create')`,
      [role],
    );
    t.strictSame(creatable, role === "coupon_worker" ? ["graphile_worker"] : [], role);
    const [right] = await login.rows(
      `select has_database_privilege($1, current_database(), 'create') as create,
         has_database_privilege($1, current_database(), 'temporary') as temporary`,
      [role],
    );
    t.strictSame({ ...right }, { create: false, temporary: false }, role);
  }
});

t.test("coupon_report and coupon_admin read every view of report, and no view shows a secret", async (t) => {
  for (const role of roles) {
    const readable = await names(
      `select c.relname as name from pg_class c
       where c.relnamespace = 'report'::regnamespace and has_table_privilege($1, c.oid, 'select')`,
      [role],
    );
    t.equal(readable.length > 0, rights[role]!.includes("report"), role);
    const writable = await names(
      `select c.relname as name from pg_class c
       where c.relnamespace = 'report'::regnamespace
         and has_table_privilege($1, c.oid, 'insert, update, delete, truncate, trigger')`,
      [role],
    );
    t.strictSame(writable, [], role);
  }
  t.strictSame(
    await names(
      `select format('%s.%s', c.relname, a.attname) as name
       from pg_class c join pg_attribute a on a.attrelid = c.oid
       where c.relnamespace = 'report'::regnamespace
         and (a.attname ~ 'secret|salt|hash|nonce' and a.atttypid <> 'timestamptz'::regtype
              or a.atttypid = 'bytea'::regtype)`,
    ),
    [],
  );
  const views = await names(
    `select c.relname as name from pg_class c
     where c.relnamespace = 'report'::regnamespace and c.relkind = 'v'`,
  );
  for (const view of views) {
    for (const role of ["coupon_report", "coupon_admin"]) {
      await login.rows(`set role ${role}`);
      await t.resolves(login.rows(`select * from report.${view}`), `${role} reads report.${view}`);
      await login.rows("reset role");
    }
  }
});

t.test("PUBLIC has no rights on anything of ours", async (t) => {
  const open = await names(
    `select 'function ' || p.oid::regprocedure as name
     from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     where p.pronamespace::regnamespace::text = any ($1) and a.grantee = 0
     union all
     select 'relation ' || c.oid::regclass from pg_class c, aclexplode(c.relacl) a
     where c.relnamespace::regnamespace::text = any ($1) and a.grantee = 0
     union all
     select 'schema ' || n.nspname from pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
     where (n.nspname = any ($1) or n.nspname in ('public', 'graphile_worker')) and a.grantee = 0
     union all
     -- Not the row types of tables: without usage on the schema nobody can name them.
     select 'type ' || y.oid::regtype
     from pg_type y left join pg_class c on c.oid = y.typrelid,
          aclexplode(coalesce(y.typacl, acldefault('T', y.typowner))) a
     where y.typnamespace::regnamespace::text = any ($1) and a.grantee = 0
       and y.typtype in ('c', 'd', 'e') and coalesce(c.relkind, 'c') = 'c'
     union all
     select format('%s on the database', a.privilege_type) from pg_database d, aclexplode(d.datacl) a
     where d.datname = current_database() and a.grantee = 0
     union all
     select 'the database' from pg_database d where d.datname = current_database() and d.datacl is null
     order by 1`,
    [ourSchemas],
  );
  t.strictSame(open, []);
});

t.test("PUBLIC has no rights on a function that the owner creates later", async (t) => {
  await login.rows("set role coupon_owner");
  await login.rows("create function rules.tomorrow() returns int language sql immutable return 1");
  const acl = await names("select proacl::text as name from pg_proc where proname = 'tomorrow'");
  await login.rows("drop function rules.tomorrow()");
  await login.rows("reset role");
  t.strictSame(acl, ["{coupon_owner=X/coupon_owner}"]);
});

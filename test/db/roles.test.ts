// Who may do what in the database, read from its catalog: a new table or function is covered without a change here.
import t from "tap";
import { migrate } from "../../src/migration/migrate.ts";
import { codeSchemas } from "../../src/migration/db-files.ts";
import { connect } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { createEmptyDatabase } from "../support/database.ts";

// What each program's role may call: all functions of these schemas, and nothing else.
const rights: Record<string, string[]> = {
  coupon_api: ["gate"],
  coupon_worker: ["jobs", "graphile_worker"],
  coupon_report: ["report"],
  coupon_admin: ["admin", "report"],
};
const roles = Object.keys(rights);
const ours = ["core", ...codeSchemas];
// A view calls functions as its reader: its readers may execute them, but without usage of the schema they have no other way to them.
const calledByViews = `
  select d.refobjid as oid from pg_rewrite r
  join pg_class c on c.oid = r.ev_class and c.relnamespace = 'report'::regnamespace
  join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_proc'::regclass
  join pg_proc p on p.oid = d.refobjid and p.pronamespace = 'rules'::regnamespace`;

let login: Database;
t.before(async () => {
  // Freshly migrated, not cloned: a clone has not the rights on the database itself.
  const { address, drop } = await createEmptyDatabase();
  await migrate(address);
  login = connect(address, { name: "coupon test", max: 1 });
  t.teardown(async () => {
    await login.end();
    await drop();
  });
});

async function names(text: string, params: unknown[] = []): Promise<string[]> {
  return (await login.rows<{ name: string }>(text, params)).map(({ name }) => name);
}

t.test("no role but the owner has any right on a table, a column or a sequence of core", async (t) => {
  for (const role of [...roles, "public"]) {
    const found = await names(
      `select format('%s on %s', p.privilege, c.relname) as name
       from pg_class c
       cross join unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger']) p (privilege)
       where c.relnamespace = 'core'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
         and (has_table_privilege($1, c.oid, p.privilege)
              or (p.privilege in ('select', 'insert', 'update', 'references') and has_any_column_privilege($1, c.oid, p.privilege)))
       union all
       select format('%s on %s', p.privilege, c.relname)
       from pg_class c cross join unnest(array['usage', 'select', 'update']) p (privilege)
       where c.relnamespace = 'core'::regnamespace and c.relkind = 'S' and has_sequence_privilege($1, c.oid, p.privilege)`,
      [role],
    );
    t.strictSame(found, [], role);
  }
});

t.test("and tried out, every table of core refuses every statement of every role", async (t) => {
  const tables = await login.rows<{ name: string; column: string }>(
    `select c.relname as name, a.attname as column from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum = 1
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

t.test("a role calls the functions of its schema and no other", async (t) => {
  const all = await login.rows<{ oid: number; schema: string; name: string }>(
    `select p.oid::int, n.nspname as schema, p.proname as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where n.nspname = any ($1) or n.nspname = 'graphile_worker'`,
    [ours],
  );
  t.ok(all.length > 100);
  const needed = await names(
    `select distinct p.oid::regproc::text as name from pg_proc p where p.oid in (${calledByViews}) order by 1`,
  );
  for (const [role, schemas] of Object.entries(rights)) {
    const callable = new Set(
      await login
        .rows<{ oid: number }>(
          `select p.oid::int from pg_proc p
       where has_function_privilege($1, p.oid, 'execute') and has_schema_privilege($1, p.pronamespace, 'usage')`,
          [role],
        )
        .then((rows) => rows.map(({ oid }) => oid)),
    );
    const wrong = all.filter(({ oid, schema }) => callable.has(oid) !== schemas.includes(schema));
    t.strictSame(wrong, [], role);
    const granted = await names(
      `select n.nspname || '.' || p.proname as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where n.nspname = any ($2) and not n.nspname = any ($3) and has_function_privilege($1, p.oid, 'execute') order by 1`,
      [role, ours, schemas],
    );
    t.strictSame(granted, schemas.includes("report") ? needed : [], `${role}: what views of theirs call`);
  }
});

t.test("a role uses its schemas and creates nothing", async (t) => {
  for (const [role, schemas] of Object.entries(rights)) {
    const usable = await names(
      "select nspname as name from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema' and has_schema_privilege($1, oid, 'usage') order by 1",
      [role],
    );
    t.strictSame(usable, schemas.toSorted(), role);
    const creatable = await names(
      "select nspname as name from pg_namespace where nspname !~ '^pg_' and has_schema_privilege($1, oid, 'create')",
      [role],
    );
    t.strictSame(creatable, role === "coupon_worker" ? ["graphile_worker"] : [], role);
    const [right] = await login.rows(
      "select has_database_privilege($1, current_database(), 'create') as create, has_database_privilege($1, current_database(), 'temporary') as temporary",
      [role],
    );
    t.strictSame({ ...right }, { create: false, temporary: false }, role);
  }
});

t.test("a view of report is read by the two who may, and shows nothing secret", async (t) => {
  for (const role of roles) {
    const readable = await names(
      "select c.relname as name from pg_class c where c.relnamespace = 'report'::regnamespace and has_table_privilege($1, c.oid, 'select')",
      [role],
    );
    t.equal(readable.length > 0, rights[role]!.includes("report"), role);
    const writable = await names(
      "select c.relname as name from pg_class c where c.relnamespace = 'report'::regnamespace and has_table_privilege($1, c.oid, 'insert, update, delete, truncate, trigger')",
      [role],
    );
    t.strictSame(writable, [], role);
  }
  t.strictSame(
    await names(
      `select format('%s.%s', c.relname, a.attname) as name from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'report'::regnamespace and (a.attname ~ 'secret|salt|hash|nonce' and a.atttypid <> 'timestamptz'::regtype or a.atttypid = 'bytea'::regtype)`,
    ),
    [],
  );
  for (const view of await names(
    "select c.relname as name from pg_class c where c.relnamespace = 'report'::regnamespace and c.relkind = 'v'",
  )) {
    for (const role of ["coupon_report", "coupon_admin"]) {
      await login.rows(`set role ${role}`);
      await t.resolves(login.rows(`select * from report.${view}`), `${role} reads report.${view}`);
      await login.rows("reset role");
    }
  }
});

t.test("nothing of ours is open to everybody", async (t) => {
  const open = await names(
    `select 'function ' || p.oid::regprocedure as name from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     where p.pronamespace::regnamespace::text = any ($1) and a.grantee = 0
     union all
     select 'relation ' || c.oid::regclass from pg_class c, aclexplode(c.relacl) a where c.relnamespace::regnamespace::text = any ($1) and a.grantee = 0
     union all
     select 'schema ' || n.nspname from pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
     where (n.nspname = any ($1) or n.nspname in ('public', 'graphile_worker')) and a.grantee = 0
     union all
     -- Row types of tables aside: they cannot be named without usage of the schema.
     select 'type ' || y.oid::regtype from pg_type y left join pg_class c on c.oid = y.typrelid, aclexplode(coalesce(y.typacl, acldefault('T', y.typowner))) a
     where y.typnamespace::regnamespace::text = any ($1) and a.grantee = 0 and y.typtype in ('c', 'd', 'e') and coalesce(c.relkind, 'c') = 'c'
     union all
     select format('%s on the database', a.privilege_type) from pg_database d, aclexplode(d.datacl) a where d.datname = current_database() and a.grantee = 0
     union all
     select 'the database' from pg_database d where d.datname = current_database() and d.datacl is null
     order by 1`,
    [ours],
  );
  t.strictSame(open, []);
});

t.test("what the owner makes tomorrow is not open to everybody either", async (t) => {
  await login.rows("set role coupon_owner");
  await login.rows("create function rules.tomorrow() returns int language sql immutable return 1");
  const acl = await names("select proacl::text as name from pg_proc where proname = 'tomorrow'");
  await login.rows("drop function rules.tomorrow()");
  await login.rows("reset role");
  t.strictSame(acl, ["{coupon_owner=X/coupon_owner}"]);
});

t.test("the owner owns all of it; the roles cannot log in, are nobody's members and have no powers", async (t) => {
  t.strictSame(
    await names(
      `select c.oid::regclass::text as name from pg_class c where c.relnamespace::regnamespace::text = any ($1) and c.relowner <> 'coupon_owner'::regrole
     union all select p.oid::regprocedure::text from pg_proc p where p.pronamespace::regnamespace::text = any ($1) and p.proowner <> 'coupon_owner'::regrole
     union all select n.nspname from pg_namespace n where n.nspname = any ($1) and n.nspowner <> 'coupon_owner'::regrole`,
      [ours],
    ),
    [],
  );
  t.strictSame(
    await names(
      `select rolname as name from pg_roles where rolname = any ($1)
       and (rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls)`,
      [[...roles, "coupon_owner"]],
    ),
    [],
  );
  t.strictSame(
    await names(
      `select format('%s is a member of %s', m.member::regrole, m.roleid::regrole) as name from pg_auth_members m where m.member::regrole::text = any ($1)`,
      [[...roles, "coupon_owner"]],
    ),
    [],
  );
});

t.test("a function's names mean the same whoever calls it", async (t) => {
  // A fixed search_path with nothing in it that anybody could write to, or a body that was resolved when it was made.
  t.strictSame(
    await names(
      `select p.oid::regprocedure::text as name from pg_proc p where p.pronamespace::regnamespace::text = any ($1)
       and p.prosqlbody is null and not coalesce(p.proconfig @> array['search_path=pg_catalog, pg_temp'], false)`,
      [ours],
    ),
    [],
  );
  // Only where the caller's own role would not do: at the doors, in triggers, and where a view reads for its reader.
  t.strictSame(
    await names(
      `select p.oid::regprocedure::text as name from pg_proc p where p.prosecdef and p.pronamespace::regnamespace::text = any ($1)
       and p.pronamespace::regnamespace::text not in ('gate', 'jobs', 'admin', 'report')
       and p.prorettype <> 'trigger'::regtype and p.oid not in (${calledByViews})`,
      [ours],
    ),
    [],
  );
  t.strictSame(
    await names(
      `select p.oid::regprocedure::text as name from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where p.prosecdef and a.grantee = 0`,
    ),
    [],
  );
});

t.test("every key has the tenant in it, and every reference to a tenant's row stays in the tenant", async (t) => {
  // Facts and states of the whole database, and two logs.
  const global = ["audit", "code_version", "currency", "delivery_attempt", "event_gap", "migration", "sequencer"];
  t.strictSame(
    await names(
      `select c.conrelid::regclass::text as name from pg_constraint c
     where c.contype = 'p' and c.connamespace = 'core'::regnamespace and not exists (
       select from pg_attribute a where a.attrelid = c.conrelid and a.attnum = any (c.conkey) and a.attname = 'tenant_id') order by 1`,
    ),
    global.map((name) => `core.${name}`),
  );
  t.strictSame(
    await names(
      `select c.conname as name from pg_constraint c
     join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
     join pg_attribute f on f.attrelid = c.confrelid and f.attnum = c.confkey[1]
     where c.contype = 'f' and c.connamespace = 'core'::regnamespace and c.confrelid <> 'core.currency'::regclass
       and (a.attname <> 'tenant_id' or f.attname <> 'tenant_id' or not c.convalidated)`,
    ),
    [],
  );
});

// Columns that say what they are by their name alone. Every other one has a comment.
const obvious = new RegExp(
  `^(
    ${["tenant", "party", "merchant", "store", "terminal", "template", "batch", "coupon", "redemption", "reversal", "entry", "event", "credential", "audit", "attempt", "maker", "distributor", "external", "caller", "order", "request", "lock_request"].map((noun) => `${noun}_id`).join("|")}
    |name|reason|currency|url|nonce|operation|response|action|target|client|status|number|store|terminal|attempt|error|last_error|decimals|position|sha256|access_key|idempotency_key|http_status|business_date|is_only|valid_from|valid_to
    |\\w+_(at|minor|percent|count|type|seconds|ms|bytes|rows|sha256|seq|until)
  )$`.replace(/\s/g, ""),
);

t.test("every table, view and function has a comment, and every column that does not explain itself", async (t) => {
  t.strictSame(
    await names(
      `select c.oid::regclass::text as name from pg_class c where c.relnamespace::regnamespace::text = any ($1) and c.relkind in ('r', 'p', 'v', 'm') and obj_description(c.oid, 'pg_class') is null
     union all select p.oid::regprocedure::text from pg_proc p where p.pronamespace::regnamespace::text = any ($1) and obj_description(p.oid, 'pg_proc') is null
     union all select n.nspname from pg_namespace n where n.nspname = any ($1) and obj_description(n.oid, 'pg_namespace') is null
     union all select y.oid::regtype::text from pg_type y join pg_class c on c.oid = y.typrelid and c.relkind = 'c' where y.typnamespace = 'core'::regnamespace and obj_description(y.oid, 'pg_type') is null`,
      [ours],
    ),
    [],
  );
  const bare = await login.rows<{ table: string; column: string }>(
    `select c.relname as table, a.attname as column from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'core'::regnamespace and c.relkind in ('r', 'p') and col_description(c.oid, a.attnum) is null order by 1, a.attnum`,
  );
  t.strictSame(
    bare.filter(({ column }) => !obvious.test(column)).map(({ table, column }) => `${table}.${column}`),
    [],
  );
});

// Conventions that hold for every table, function and column, and what each database role may do, read from
// PostgreSQL's catalog. A new table or function is covered without a change here.
import t from "tap";
import { connect, sqlState } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { codeSchemas } from "../../src/migration/db-files.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { read, readBlocks } from "../docs/markdown.ts";
import { createEmptyDatabase } from "../support/database.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario } from "../support/scenario.ts";
import type { Coupon } from "../support/caller.ts";

const ourSchemas = ["core", ...codeSchemas];

// Each role may call all functions of these schemas, those that several programs share, and no others. None owns
// anything.
const rights: Record<string, string[]> = {
  coupon_api: ["gate"],
  coupon_worker: ["jobs", "graphile_worker"],
  coupon_report: ["report"],
  coupon_admin: ["admin", "report"],
};
const roles = Object.keys(rights);
const shared = ["rules.register_keys", "rules.read_statement_page"];
const sharing = ["coupon_api", "coupon_worker", "coupon_admin"];

// The functions of rules that views call. A view calls functions as its reader, so its readers may execute them. They
// cannot call them directly, because they lack usage on the schema.
const calledByViews = `
  select d.refobjid as oid from pg_rewrite r
  join pg_class c on c.oid = r.ev_class and c.relnamespace in ('report'::regnamespace, 'rules'::regnamespace)
  join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
    and d.refclassid = 'pg_proc'::regclass
  join pg_proc p on p.oid = d.refobjid and p.pronamespace = 'rules'::regnamespace`;

// A superuser in a freshly migrated database. Not a clone of the template: a clone lacks the rights on the database
// itself.
let login: Database;
t.before(async () => {
  const { address, drop } = await createEmptyDatabase();
  await migrate(address);
  login = connect(address, { name: "coupon test", max: 1 });
  t.teardown(async () => {
    await login.end();
    await drop();
  });
});

/** The column `name` of each row. */
const names = async (text: string, params: unknown[] = []) =>
  (await login.rows<{ name: string }>(text, params)).map(({ name }) => name);

t.test("Every primary key contains the tenant, and every reference stays within the tenant", async (t) => {
  // Facts and states of the whole database, and two logs.
  const global = "audit code_version currency delivery_attempt event_gap master_key migration sequencer".split(" ");
  t.strictSame(
    await names(
      `select c.conrelid::regclass::text as name from pg_constraint c
       where c.contype = 'p' and c.connamespace = 'core'::regnamespace
         and not exists (
           select from pg_attribute a
           where a.attrelid = c.conrelid and a.attnum = any (c.conkey) and a.attname = 'tenant_id')
       order by 1`,
    ),
    global.map((name) => `core.${name}`),
  );
  t.strictSame(
    await names(
      `select c.conname as name from pg_constraint c
       join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
       join pg_attribute f on f.attrelid = c.confrelid and f.attnum = c.confkey[1]
       where c.contype = 'f' and c.connamespace = 'core'::regnamespace
         and c.confrelid not in ('core.currency'::regclass, 'core.master_key'::regclass)
         and (a.attname <> 'tenant_id' or f.attname <> 'tenant_id' or not c.convalidated)`,
    ),
    [],
  );
});

// Texts without a rule of the table. Our own code makes most of them. The currency is that of the template; a rule for
// the nonce would cost every call, and its index takes no long text.
const unlimited = `audit.action audit.client audit.login audit.target code_version.sha256 delivery.last_error
  delivery_attempt.error delivery_attempt.test_event_type ledger_entry.currency migration.name migration.sha256
  nonce.nonce redemption.currency request.operation test_delivery.body`.split(/\s+/);

t.test("Every text that a caller or a provisioning file brings has a limit in its table", async (t) => {
  t.strictSame(
    await names(
      `select format('%s.%s', c.relname, a.attname) as name
       from pg_attribute a join pg_class c on c.oid = a.attrelid
       where c.relnamespace = 'core'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
         and a.atttypid in ('text'::regtype, 'text[]'::regtype)
         and not exists (
           select from pg_constraint r
           where r.conrelid = a.attrelid and r.contype in ('c', 'f') and a.attnum = any (r.conkey))
       order by 1`,
    ),
    unlimited,
  );
});

// Column names that need no comment.
const nouns = `tenant party merchant store terminal template batch coupon redemption reversal entry event credential
  audit attempt maker distributor external caller order request lock_request`.split(/\s+/);
const plain = `name reason currency url nonce operation response action target client status number store terminal
  attempt error last_error decimals position sha256 access_key idempotency_key http_status business_date is_only
  valid_from valid_to`.split(/\s+/);
const endings = "at minor percent count type seconds ms bytes rows sha256 seq until".split(" ");
const selfExplaining = new RegExp(`^(${nouns.join("|")})_id$|^(${plain.join("|")})$|^\\w+_(${endings.join("|")})$`);

// The files of the other schemas begin with a comment: see the project rules.
t.test("Every table, view and function that DBAs use, and each type, has a comment", async (t) => {
  t.strictSame(
    await names(
      `select c.oid::regclass::text as name from pg_class c
       where c.relnamespace::regnamespace::text = any ($1) and c.relkind in ('r', 'p', 'v', 'm')
         and obj_description(c.oid, 'pg_class') is null
       union all
       select p.oid::regprocedure::text from pg_proc p
       where p.pronamespace::regnamespace::text = any ($1) and obj_description(p.oid, 'pg_proc') is null
       union all
       select n.nspname from pg_namespace n
       where n.nspname = any ($1) and obj_description(n.oid, 'pg_namespace') is null
       union all
       select y.oid::regtype::text from pg_type y join pg_class c on c.oid = y.typrelid and c.relkind = 'c'
       where y.typnamespace = 'core'::regnamespace and obj_description(y.oid, 'pg_type') is null`,
      [["core", "admin", "report"]],
    ),
    [],
  );
});

t.test(
  "Every column of a report has a comment, and every column of a table has one or a name that explains it",
  async (t) => {
    const bare = await login.rows<{ schema: string; table: string; column: string }>(
      `select c.relnamespace::regnamespace::text as schema, c.relname as table, a.attname as column
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace in ('core'::regnamespace, 'report'::regnamespace) and c.relkind in ('r', 'p', 'v')
       and coalesce(col_description(c.oid, a.attnum), '') = ''
     order by 1, a.attnum`,
    );
    const unclear = bare.filter(({ schema, column }) => schema === "report" || !selfExplaining.test(column));
    t.strictSame([...unclear], []);
  },
);

t.test(
  "coupon_owner owns everything; our roles cannot log in, belong to no role and have no special powers",
  async (t) => {
    t.strictSame(
      await names(
        `select c.oid::regclass::text as name from pg_class c
       where c.relnamespace::regnamespace::text = any ($1) and c.relowner <> 'coupon_owner'::regrole
       union all
       select p.oid::regprocedure::text from pg_proc p
       where p.pronamespace::regnamespace::text = any ($1) and p.proowner <> 'coupon_owner'::regrole
       union all
       select n.nspname from pg_namespace n
       where n.nspname = any ($1) and n.nspowner <> 'coupon_owner'::regrole`,
        [ourSchemas],
      ),
      [],
    );
    t.strictSame(
      await names(
        `select rolname as name from pg_roles
       where rolname = any ($1)
         and (rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls)`,
        [[...roles, "coupon_owner"]],
      ),
      [],
    );
    t.strictSame(
      await names(
        `select format('%s is a member of %s', m.member::regrole, m.roleid::regrole) as name from pg_auth_members m
       where m.member::regrole::text = any ($1)`,
        [[...roles, "coupon_owner"]],
      ),
      [],
    );
  },
);

t.test("No caller can redirect the names in a function, and PUBLIC calls no security definer function", async (t) => {
  // A security definer function has a fixed search_path without schemas that others can write to, because everything
  // that it calls has its owner's rights. Any other has one too, or a body that was parsed when it was created. Those
  // of api and rules that only the owner may call run inside such a function.
  t.strictSame(
    await names(
      `select p.oid::regprocedure::text as name from pg_proc p
       where p.pronamespace::regnamespace::text = any ($1) and (p.prosecdef or p.prosqlbody is null)
         and not coalesce(p.proconfig @> array['search_path=pg_catalog, pg_temp'], false)
         and (p.prosecdef or p.pronamespace::regnamespace::text not in ('api', 'rules') or exists (
           select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee <> p.proowner))`,
      [ourSchemas],
    ),
    [],
  );
  // Security definer is only for functions that roles call, for triggers, and for functions that views call.
  t.strictSame(
    await names(
      `select p.oid::regprocedure::text as name from pg_proc p
       where p.prosecdef and p.pronamespace::regnamespace::text = any ($1)
         and p.pronamespace::regnamespace::text not in ('gate', 'jobs', 'admin', 'report')
         and p.prorettype <> 'trigger'::regtype and p.oid not in (${calledByViews}) order by 1`,
      [ourSchemas],
    ),
    ["rules.read_statement_page(integer,integer,date,text,integer,integer)", "rules.register_keys(jsonb)"],
  );
  t.strictSame(
    await names(
      `select p.oid::regprocedure::text as name
       from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
       where p.prosecdef and a.grantee = 0`,
    ),
    [],
  );
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

t.test("Only coupon_report and coupon_admin read the views of report, and no view shows a secret", async (t) => {
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

// docs/security.md gives DBAs a command that takes PostgreSQL's advisory locks and large objects from all logins. The
// service must work without them.
const closed = [
  "select pg_try_advisory_lock(1)",
  "select lo_create(0)",
  "select lo_creat(-1)",
  "select lo_from_bytea(0, '')",
];
const command = readBlocks(read("docs/security.md")).find(({ text }) => text.startsWith("do $$"));

t.test("After the command no login takes advisory locks or makes large objects, and the service works", async (t) => {
  const world = await scenario(t);
  const { till } = world.a;
  await (await world.openPsql()).run(command!.text);

  for (const role of roles) {
    const session = connect(world.address, { name: "coupon test", role, max: 1 });
    t.teardown(() => session.end());
    // 42501: insufficient privilege.
    for (const text of closed) t.equal(await session.rows(text).catch(sqlState), "42501", `${role}: ${text}`);
  }

  // Minting joins the workers and looks whether one is gone.
  const [coupon] = (await world.a.makeCoupons(1)) as [Coupon];
  const body = { request_id: newRequestId(), coupon: coupon.code, merchant: "mch_a" };
  t.equal((await till.post("/v1/coupons/redeem", body, { idempotencyKey: newRequestId() })).status, 200);
  await world.steps.sequence();
  await world.admin.rows("select admin.note_restore('rehearsal')");
  t.equal((await till.get("/v1/events")).json.events.length, 1);
});

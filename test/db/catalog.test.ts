// Conventions that hold for every table, function and column, read from PostgreSQL's catalog. A new one is covered
// without a change here. For rights see roles.test.ts.
import t from "tap";
import { calledByViews, openCatalog, ourRoles, ourSchemas, type Catalog } from "../support/fresh-database.ts";

let login: Catalog["login"];
let names: Catalog["names"];
t.before(async () => {
  ({ login, names } = await openCatalog(t));
});

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

t.test("Every column has a self-explaining name or a comment", async (t) => {
  const bare = await login.rows<{ table: string; column: string }>(
    `select c.relname as table, a.attname as column
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'core'::regnamespace and c.relkind in ('r', 'p')
       and col_description(c.oid, a.attnum) is null
     order by 1, a.attnum`,
  );
  t.strictSame(
    bare.filter(({ column }) => !selfExplaining.test(column)).map(({ table, column }) => `${table}.${column}`),
    [],
  );
});

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
        [[...ourRoles, "coupon_owner"]],
      ),
      [],
    );
    t.strictSame(
      await names(
        `select format('%s is a member of %s', m.member::regrole, m.roleid::regrole) as name from pg_auth_members m
       where m.member::regrole::text = any ($1)`,
        [[...ourRoles, "coupon_owner"]],
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

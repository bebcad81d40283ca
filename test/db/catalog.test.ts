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
  coupon_console: ["console", "report"],
  coupon_portal: ["portal"],
};
const roles = Object.keys(rights);
const ourRoles = [...roles, "coupon_owner"].map((role) => `'${role}'`).join(", ");
const ofAll = ["rules.register_keys", "rules.read_version", "rules.read_statement_page"];
const ofCheckers = ["rules.check_invariant", "rules.list_invariants"];
// What staff changes from a page. None of these takes or returns a secret, a salt or a hash.
const ofConsole = `suspend_batch resume_batch recall_batch release_lock void_coupon extend_coupon replay_event
  replay_parked enable_webhook disable_webhook test_webhook`;
const ofExports = ["rules.read_export_page"];
const shared: Record<string, string[]> = {
  coupon_api: [...ofAll, ...ofExports],
  coupon_worker: [...ofAll, ...ofCheckers],
  coupon_admin: [...ofAll, ...ofCheckers, ...ofExports],
  coupon_console: ["rules.read_version", ...ofCheckers, ...ofConsole.split(/\s+/).map((name) => `admin.${name}`)],
};

// The functions of rules and core that views call. A view calls functions as its reader, so its readers may execute
// them. They cannot call them directly, because they lack usage on the schema.
const calledByViews = `
  select d.refobjid as oid from pg_rewrite r
  join pg_class c on c.oid = r.ev_class and c.relnamespace::regnamespace::text in ('report', 'rules', 'portal')
  join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
    and d.refclassid = 'pg_proc'::regclass
  join pg_proc p on p.oid = d.refobjid and p.pronamespace in ('rules'::regnamespace, 'core'::regnamespace)`;

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

// Texts without a rule of the table. Our own code makes most of them. The currency is that of the template; a rule for
// the nonce would cost every call, and its index takes no long text.
const unlimited = `audit.client audit.login audit.target code_version.sha256 delivery.last_error
  delivery_attempt.error delivery_attempt.test_event_type ledger_entry.currency migration.name migration.sha256
  nonce.nonce redemption.currency redemption.status request.operation test_delivery.body`;

// Column names that need no comment.
const nouns = `tenant party merchant store terminal template batch coupon redemption reversal entry event credential
  audit attempt maker distributor external caller order request lock_request`;
const plain = `name reason currency url nonce operation response action target client status number store terminal
  attempt error last_error decimals position sha256 access_key idempotency_key http_status business_date is_only
  valid_from valid_to`;
const endings = "at minor percent count type seconds ms bytes rows sha256 seq until";
const oneOf = (words: string) => `(${words.split(/\s+/).join("|")})`;
const selfExplaining = `^${oneOf(nouns)}_id$|^${oneOf(plain)}$|^\\w+_${oneOf(endings)}$`;

/** Each query finds what breaks the rule of its title, in the column `name`. Only the listed names may. */
const conventions: [rule: string, query: string, allowed?: string][] = [
  [
    "Every primary key contains the tenant",
    `select c.conrelid::regclass::text as name from pg_constraint c
     where c.contype = 'p' and c.connamespace = 'core'::regnamespace
       and not exists (
         select from pg_attribute a
         where a.attrelid = c.conrelid and a.attnum = any (c.conkey) and a.attname = 'tenant_id')`,
    // Facts and states of the whole database, its staff, and two logs.
    `core.audit core.cell core.code_version core.console_session core.currency core.delivery_attempt core.event_gap
     core.invariant_check core.master_key core.migration core.prune_walk core.sequencer`,
  ],
  [
    "Every reference stays within the tenant",
    `select c.conname as name from pg_constraint c
     join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
     join pg_attribute f on f.attrelid = c.confrelid and f.attnum = c.confkey[1]
     where c.contype = 'f' and c.connamespace = 'core'::regnamespace
       and c.confrelid not in ('core.currency'::regclass, 'core.master_key'::regclass)
       and (a.attname <> 'tenant_id' or f.attname <> 'tenant_id' or not c.convalidated)`,
  ],
  [
    "Every text that a caller or a provisioning file brings has a limit in its table",
    `select format('%s.%s', c.relname, a.attname) as name
     from pg_attribute a join pg_class c on c.oid = a.attrelid
     where c.relnamespace = 'core'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
       and a.atttypid in ('text'::regtype, 'text[]'::regtype)
       and not exists (
         select from pg_constraint r
         where r.conrelid = a.attrelid and r.contype in ('c', 'f') and a.attnum = any (r.conkey))`,
    unlimited,
  ],
  [
    // The files of the other schemas begin with a comment: see the project rules.
    "Every table, view and function that DBAs use, and each type, has a comment",
    `select c.oid::regclass::text as name from pg_class c
     where c.relnamespace::regnamespace::text in ('core', 'admin', 'report') and c.relkind in ('r', 'p', 'v', 'm')
       and obj_description(c.oid, 'pg_class') is null
     union all
     select p.oid::regprocedure::text from pg_proc p
     where p.pronamespace::regnamespace::text in ('core', 'admin', 'report')
       and obj_description(p.oid, 'pg_proc') is null
     union all
     select n.nspname from pg_namespace n
     where n.nspname in ('core', 'admin', 'report') and obj_description(n.oid, 'pg_namespace') is null
     union all
     select y.oid::regtype::text from pg_type y join pg_class c on c.oid = y.typrelid and c.relkind = 'c'
     where y.typnamespace = 'core'::regnamespace and obj_description(y.oid, 'pg_type') is null`,
  ],
  [
    "Every column of a report has a comment, and every column of a table has one or a name that explains it",
    `select format('%s.%s', c.oid::regclass, a.attname) as name
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace in ('core'::regnamespace, 'report'::regnamespace) and c.relkind in ('r', 'p', 'v')
       and coalesce(col_description(c.oid, a.attnum), '') = ''
       and (c.relnamespace = 'report'::regnamespace or a.attname !~ '${selfExplaining}')`,
  ],
  [
    "coupon_owner owns everything",
    `select c.oid::regclass::text as name from pg_class c
     where c.relnamespace::regnamespace::text = any ($1) and c.relowner <> 'coupon_owner'::regrole
     union all
     select p.oid::regprocedure::text from pg_proc p
     where p.pronamespace::regnamespace::text = any ($1) and p.proowner <> 'coupon_owner'::regrole
     union all
     select n.nspname from pg_namespace n where n.nspname = any ($1) and n.nspowner <> 'coupon_owner'::regrole`,
  ],
  [
    "Our roles cannot log in, belong to no role and have no special powers",
    `select rolname as name from pg_roles
     where rolname in (${ourRoles})
       and (rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls)
     union all
     select format('%s is a member of %s', m.member::regrole, m.roleid::regrole) from pg_auth_members m
     where m.member::regrole::text in (${ourRoles})`,
  ],
  [
    // A security definer function has a fixed search_path without schemas that others can write to, because everything
    // that it calls has its owner's rights. Any other has one too, or a body that was parsed when it was created. Those
    // of api and rules that only the owner may call run inside such a function.
    "No caller can redirect the names in a function",
    `select p.oid::regprocedure::text as name from pg_proc p
     where p.pronamespace::regnamespace::text = any ($1) and (p.prosecdef or p.prosqlbody is null)
       and not coalesce(p.proconfig @> array['search_path=pg_catalog, pg_temp'], false)
       and (p.prosecdef or p.pronamespace::regnamespace::text not in ('api', 'rules') or exists (
         select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee <> p.proowner))`,
  ],
  [
    "Security definer is only for functions that roles call, for triggers, and for functions that views call",
    `select p.oid::regproc::text as name from pg_proc p
     where p.prosecdef and p.pronamespace::regnamespace::text = any ($1)
       and p.pronamespace::regnamespace::text not in ('gate', 'jobs', 'admin', 'report', 'console', 'portal')
       and p.prorettype <> 'trigger'::regtype and p.oid not in (${calledByViews})`,
    `rules.check_invariant rules.list_invariants rules.read_export_page rules.read_statement_page rules.read_version
     rules.register_keys`,
  ],
  [
    "Only the owner has rights on the tables, columns and sequences of core",
    `select format('%s: %s on %s', r.role, p.privilege, c.relname) as name
     from unnest(array[${ourRoles}, 'public']) r (role)
     cross join pg_class c
     cross join unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger'])
       p (privilege)
     where r.role <> 'coupon_owner' and c.relnamespace = 'core'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
       and (has_table_privilege(r.role, c.oid, p.privilege)
            or (p.privilege in ('select', 'insert', 'update', 'references')
                and has_any_column_privilege(r.role, c.oid, p.privilege)))
     union all
     select format('%s: %s on %s', r.role, p.privilege, c.relname)
     from unnest(array[${ourRoles}, 'public']) r (role)
     cross join pg_class c
     cross join unnest(array['usage', 'select', 'update']) p (privilege)
     where r.role <> 'coupon_owner' and c.relnamespace = 'core'::regnamespace and c.relkind = 'S'
       and has_sequence_privilege(r.role, c.oid, p.privilege)`,
  ],
  [
    "Only coupon_report, coupon_admin and coupon_console read the views of report, and nobody writes to them",
    `select format('%s and %s', r.role, c.relname) as name
     from unnest(array[${ourRoles}]) r (role) cross join pg_class c
     where r.role <> 'coupon_owner' and c.relnamespace = 'report'::regnamespace and c.relkind = 'v'
       and (has_table_privilege(r.role, c.oid, 'insert, update, delete, truncate, trigger')
            or has_table_privilege(r.role, c.oid, 'select') 
              <> (r.role in ('coupon_report', 'coupon_admin', 'coupon_console')))`,
  ],
  [
    // Readers lack usage on our types, so their own expressions over such a column would find no operators.
    "All columns of reports are of base types",
    `select format('%s.%s', a.attrelid::regclass, a.attname) as name
     from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_type t on t.oid = a.atttypid
     where c.relnamespace = 'report'::regnamespace and a.attnum > 0 and t.typtype = 'd'`,
  ],
  [
    "No view shows a secret",
    `select format('%s.%s', c.relname, a.attname) as name
     from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'report'::regnamespace
       and (a.attname ~ 'secret|salt|hash|nonce' and a.atttypid <> 'timestamptz'::regtype
            or a.atttypid = 'bytea'::regtype)`,
  ],
  [
    "PUBLIC has no rights on anything of ours, and calls no security definer function",
    `select 'function ' || p.oid::regprocedure as name
     from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     where (p.prosecdef or p.pronamespace::regnamespace::text = any ($1)) and a.grantee = 0
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
     select 'the database' from pg_database d where d.datname = current_database() and d.datacl is null`,
  ],
];

/** The column `name` of each row, in order. */
const names = async (text: string, params: unknown[] = []) =>
  (await login.rows<{ name: string }>(text, params)).map(({ name }) => name).sort();

for (const [rule, query, allowed = ""] of conventions)
  t.test(rule, async (t) =>
    t.strictSame(await names(query, query.includes("$1") ? [ourSchemas] : []), allowed.split(/\s+/).filter(Boolean)),
  );

t.test("A role may execute the functions of its schemas, those it shares, and those its views call", async (t) => {
  const needed = await names(
    `select distinct p.oid::regproc::text as name from pg_proc p where p.oid in (${calledByViews})`,
  );
  for (const [role, schemas] of Object.entries(rights)) {
    const others = [
      ...(shared[role] ?? []),
      ...(schemas.includes("report") || schemas.includes("portal") ? needed : []),
    ];
    const wrong = await names(
      `select p.oid::regproc::text as name from pg_proc p
       where p.pronamespace::regnamespace::text = any ($2)
         and has_function_privilege($1, p.oid, 'execute')
           <> (p.pronamespace::regnamespace::text = any ($3) or p.oid::regproc::text = any ($4))`,
      [role, [...ourSchemas, "graphile_worker"], schemas, others],
    );
    t.strictSame(wrong, [], role);
  }
});

// PL/Proxy reads the answers of a cell as text. With another type, calls would fail after the cell has committed.
t.test("A router has the type of answers that its cells have", async (t) => {
  const columns = await login.rows<{ text: string }>(
    `select attname || ' ' || format_type(atttypid, atttypmod) as text
     from pg_attribute where attrelid = 'core.answer'::regclass order by attnum`,
  );
  const [, ofRouter = ""] = /create type core\.answer as \(([^)]*)\)/.exec(read("db/router/schema.sql"))!;
  const names: Record<string, string> = { int: "integer", timestamptz: "timestamp with time zone" };
  t.strictSame(
    ofRouter.split(",").map((one) => one.trim().replace(/\w+$/, (type) => names[type] ?? type)),
    columns.map(({ text }) => text),
  );
});

t.test("The console reads no secret, salt or hash", async (t) => {
  const readable = await names(
    `select format('%s.%s', a.attrelid::regclass, a.attname) as name
     from pg_attribute a join pg_class c on c.oid = a.attrelid
     where a.attnum > 0 and c.relnamespace::regnamespace::text = any ($1)
       and has_column_privilege('coupon_console', a.attrelid, a.attnum, 'select')
       and (a.attname ~ 'secret|salt|hash|sealed' or a.atttypid = 'bytea'::regtype)
     union all
     select format('%s returns %s', p.oid::regproc, coalesce(o.name, format_type(p.prorettype, null)))
     from pg_proc p
     left join lateral (
       select p.proargnames[n] as name, p.proallargtypes[n] as type
       from generate_subscripts(p.proargmodes, 1) n
       where p.proargmodes[n] in ('o', 'b', 't')) o on true
     where p.pronamespace::regnamespace::text = any ($1) and has_function_privilege('coupon_console', p.oid, 'execute')
       and (o.name ~ 'secret|salt|hash|sealed' or coalesce(o.type, p.prorettype) = 'bytea'::regtype)`,
    [ourSchemas],
  );
  // A time.
  t.strictSame(readable, ["report.party.webhook_secret_rotated_at"]);
});

t.test("A role may use its own schemas and create nothing", async (t) => {
  for (const [role, schemas] of Object.entries(rights)) {
    const usable = await names(
      `select nspname as name from pg_namespace
       where nspname !~ '^pg_' and nspname <> 'information_schema' and has_schema_privilege($1, oid, 'usage')
       order by 1`,
      [role],
    );
    const ofShared = (shared[role] ?? []).map((name) => name.split(".")[0]!);
    t.strictSame(usable, [...new Set([...schemas, ...ofShared])].toSorted(), role);
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
const closed = ["pg_try_advisory_lock(1)", "lo_create(0)", "lo_creat(-1)", "lo_from_bytea(0, '')"];
const command = readBlocks(read("docs/security.md")).find(({ text }) => text.startsWith("do $$"));

t.test("After the command no login takes advisory locks or makes large objects, and the service works", async (t) => {
  const world = await scenario(t);
  const { till } = world.a;
  await (await world.openPsql()).run(command!.text);

  for (const role of roles) {
    const session = connect(world.address, { name: "coupon test", role, max: 1 });
    t.teardown(() => session.end());
    // 42501: insufficient privilege.
    for (const call of closed)
      t.equal(await session.rows(`select ${call}`).catch(sqlState), "42501", `${role}: ${call}`);
  }

  // Minting joins the workers and looks whether one is gone.
  const [coupon] = (await world.a.makeCoupons(1)) as [Coupon];
  const body = { request_id: newRequestId(), coupon: coupon.code, merchant: "mch_a" };
  t.equal((await till.post("/v1/coupons/redeem", body, { idempotencyKey: newRequestId() })).status, 200);
  await world.steps.sequence();
  await world.admin.rows("select admin.note_restore('rehearsal')");
  t.equal((await till.get("/v1/events")).json.events.length, 1);
});

// The tables keep their rules by themselves: they refuse a superuser in psql too. Each named check, trigger and unique
// key of core refuses at least one attempt here. For foreign keys see references.test.ts.
import t from "tap";
import type { Session } from "../../src/database/types.ts";
import { attempt, type Refusal } from "../support/attempt.ts";
import { fillEveryTable } from "../support/every-table.ts";
import { attempts } from "./attempts/all.ts";
import { fill } from "./attempts/statements.ts";
import { fits } from "../support/fits.ts";

let session: Session;
let ids: Record<string, string>;
t.before(async () => {
  ({ session, ids } = await fillEveryTable(t));
});

const run = (sql: string) => attempt(session, fill(sql, ids));

// core.refuse_change serves several triggers and does not raise their names: each is found by its table.
const keepers = new Map<string, string>();
const ruleOf = (refusal: Refusal | null): string | undefined => {
  const kept = /^core\.(\w+) keeps its rows: \w+ refused$/.exec(refusal?.message ?? "");
  return kept === null ? refusal?.rule : keepers.get(kept[1]!);
};

t.test("A statement that breaks a rule is refused by that rule", async (t) => {
  const found = await session.rows<{ name: string; table: string }>(
    `select g.tgname as name, c.relname as table from pg_trigger g join pg_class c on c.oid = g.tgrelid
     where g.tgfoid = 'core.refuse_change'::regproc`,
  );
  for (const { name, table } of found) keepers.set(table, name);
  for (const { rule, attempted, sql } of attempts) t.equal(ruleOf(await run(sql)), rule, `${rule}: ${attempted}`);
});

// The rule names that a trigger function raises.
const raised = "regexp_matches(p.prosrc, $$constraint = '(\\w+)'$$, 'g')";

t.test("Every named rule of the tables is attempted, and every attempted rule exists", async (t) => {
  const rules = await session.rows<{ name: string }>(
    `select conname as name from pg_constraint c where connamespace = 'core'::regnamespace and contype in ('c', 'u')
     union select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
     where c.relnamespace = 'core'::regnamespace and i.indisunique and not i.indisprimary
     union select m[1] from pg_proc p, ${raised} m where p.pronamespace = 'core'::regnamespace
     union select tgname from pg_trigger g where g.tgfoid = 'core.refuse_change'::regproc`,
  );
  const names = rules.map(({ name }) => name);
  // Only our own code writes it.
  const exceptions = ["migration_name_key"];
  const attempted = new Set(attempts.map(({ rule }) => rule));
  t.strictSame(names.filter((name) => !attempted.has(name) && !exceptions.includes(name)).sort(), []);
  const isImplicit = (rule: string) => /_pkey$|_fkey$/.test(rule);
  t.strictSame(
    [...attempted, ...exceptions].filter((rule) => !names.includes(rule) && !isImplicit(rule)),
    [],
    "no attempt names a rule that does not exist",
  );
  fits(t, await run("update core.party set time_zone = 'Mars/Base'"), {
    message: 'time zone "Mars/Base" not recognized',
  });
  fits(t, await run("select 'oops'::core.recorded_answer"), { message: "invalid input syntax for type json" });
});

const fixed = [
  {
    table: "coupon",
    where: "coupon_id = :redeemed",
    rule: "coupon_identity_is_fixed",
    changing: "status valid_from valid_to",
  },
  {
    table: "redemption",
    where: "redemption_id = :reversed_redemption",
    rule: "redemption_terms_are_fixed",
    changing: "lock_expires_at status",
  },
  {
    table: "batch",
    where: "batch_id = :allocated",
    rule: "batch_is_fixed_at_submission",
    changing:
      "status minted_count body_hash mint_holder mint_worker mint_lease_until completed_at allocated_at " +
      "codes_destroyed_at expired_through",
  },
  {
    table: "template",
    where: "external_id = 'tpl_fixed'",
    rule: "template_with_batches_keeps_its_terms",
    changing: "name distributor_id is_for_all_merchants valid_from valid_to lock_ttl_seconds created_at",
    identity: "tenant_id template_id external_id",
  },
  {
    table: "statement",
    where: "ready_at is null",
    rule: "ready_statement_never_changes",
    changing: "ready_at detail_bytes detail_sha256 summary_rows summary_bytes summary_sha256",
  },
  {
    table: "credential",
    where: "access_key = 'ak_pos'",
    rule: "credential_stands_for_one_caller",
    changing: "sealed_secret secret_hash created_at revoked_at",
  },
];

// The triggers fire only for the columns they name, so this tries every column.
const fewChange =
  "Of a coupon, redemption, batch, used template, closed day or credential, only the columns of its life cycle change";
t.test(fewChange, async (t) => {
  for (const { table, where, rule, changing, identity = "" } of fixed) {
    const columns = await session.rows<{ name: string; other: string }>(
      `select a.attname as name,
         case
           when a.attidentity <> '' then 'default'
           when k.type = 'uuid' then 'gen_random_uuid()'
           when k.type in ('text', 'bytea') then $$'other'$$
           when k.type = 'text[]' then $$'{other}'$$
           when k.type = 'timestamp with time zone' then $$timestamptz '2001-01-01'$$
           when k.type = 'date' then $$date '2001-01-01'$$
           when k.type = 'boolean' then format('not %s', a.attname)
           else format('coalesce(%s, 0) + 1', a.attname)
         end as other
       from pg_attribute a join pg_type t on t.oid = a.atttypid,
            lateral (select coalesce(nullif(t.typbasetype, 0), t.oid)::regtype::text) k (type)
       where a.attrelid = ('core.' || $1)::regclass and a.attnum > 0 and not a.attisdropped and a.attname <> all ($2)`,
      [table, changing.split(" ")],
    );
    t.ok(columns.length >= 4);
    for (const { name, other } of columns) {
      const refusal = await run(`update core.${table} set ${name} = ${other} where ${where}`);
      const wanted = identity.split(" ").includes(name) ? "identity_is_fixed" : rule;
      t.equal(refusal?.rule, wanted, `the trigger ${wanted} and its function name ${table}.${name}`);
    }
  }
});

t.test("Each trigger is needed: with it disabled, a statement that it refuses gets past it", async (t) => {
  const triggers = await session.rows<{ name: string; table: string; raises: string[] }>(
    `select g.tgname as name, c.relname as table, array(select m[1] from ${raised} m) || g.tgname::text as raises
     from pg_trigger g join pg_class c on c.oid = g.tgrelid join pg_proc p on p.oid = g.tgfoid
     where not g.tgisinternal and c.relnamespace = 'core'::regnamespace order by 1`,
  );
  t.ok(triggers.length > 30);
  // They refuse nothing; they record an extension and a replaced secret.
  const exceptions = ["extension_is_noted", "replaced_secret_is_kept"];
  for (const { name, table, raises } of triggers.filter(({ name }) => !exceptions.includes(name))) {
    let isNeeded = false;
    for (const { rule, sql } of attempts) {
      if (isNeeded || !raises.includes(rule)) continue;
      isNeeded =
        ruleOf(await run(`alter table core.${table} disable trigger ${name}; ${sql}`)) !== rule &&
        ruleOf(await run(sql)) === rule;
    }
    t.ok(isNeeded, name);
  }
});

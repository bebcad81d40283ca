// The tables keep their rules by themselves: they refuse a superuser in psql too. Each named check, trigger and key of
// core refuses at least one attempt here, and each column that names another row is protected.
import t from "tap";
import type { Session } from "../../src/database/types.ts";
import { fillEveryTable } from "../support/every-table.ts";
import { fits } from "../support/fits.ts";
import { attemptsOnBatches } from "./attempts/batches.ts";
import { attemptsOnCoupons } from "./attempts/coupons.ts";
import { attemptsOnEvents } from "./attempts/events.ts";
import { attemptsOnIdentities } from "./attempts/identities.ts";
import { fill, insertCopy } from "./attempts/statements.ts";

let session: Session;
let ids: Record<string, string>;
t.before(async () => {
  ({ session, ids } = await fillEveryTable(t));
});

type Refusal = { sqlState: string; rule: string; message: string };

/** Runs the statements as one transaction, deferred triggers included, and rolls back. Null: nothing refused them. */
async function run(sql: string): Promise<Refusal | null> {
  try {
    await session.run(`begin; ${fill(sql, ids)}; set constraints all immediate`);
    return null;
  } catch (error) {
    const { code, constraint_name, message } = error as { code: string; constraint_name?: string; message: string };
    return { sqlState: code, rule: constraint_name ?? message, message };
  } finally {
    await session.run("rollback");
  }
}

const attempts = [attemptsOnBatches, attemptsOnCoupons, attemptsOnEvents, attemptsOnIdentities]
  .flat()
  .flatMap((subject) => Object.entries(subject))
  .flatMap(([rule, tried]) => tried.map((sql) => ({ rule, sql })));

t.test("A statement that breaks a rule is refused by that rule", async (t) => {
  for (const { rule, sql } of attempts) {
    const refusal = await run(sql);
    t.equal(refusal?.rule, rule, sql);
    // PostgreSQL's own messages name the constraint and quote values.
    if (!refusal?.message.includes('"')) t.notMatch(refusal?.message, internalKey, sql);
  }
});

// A UUID, or the number of a row, which nobody sees in the interface or in a report.
const internalKey = /[0-9a-f]{8}-[0-9a-f]{4}|\b(event|entry|party|coupon|redemption|delivery|batch|feed of|book of) \d/;

// By the statements that these tables refuse.
const kept = {
  "delete update truncate":
    "audit batch_line currency event ledger_entry merchant_page posting_page reversal statement_line " +
    "store_line voiding",
  "delete truncate": "batch coupon credential feed ledger_book redemption sequencer statement",
  "update truncate": "delivery feed_page master_key request",
  truncate: "coupon_extension event_gap",
  delete: "merchant party template tenant",
};

t.test("The tables that keep their rows refuse every statement against them", async (t) => {
  const found = await session.rows<{ name: string; column: string }>(
    `select c.relname as name, a.attname as column
     from pg_trigger g join pg_class c on c.oid = g.tgrelid join pg_attribute a on a.attrelid = c.oid and a.attnum = 1
     where g.tgfoid in ('core.refuse_change'::regproc, 'core.keep_rows'::regproc)`,
  );
  const columns = new Map(found.map(({ name, column }) => [name, column]));
  const all = Object.values(kept).flatMap((names) => names.split(" "));
  t.strictSame([...columns.keys()].sort(), all.sort());
  for (const [statements, names] of Object.entries(kept)) {
    for (const name of names.split(" ")) {
      const column = columns.get(name);
      const texts: Record<string, string> = {
        delete: `delete from core.${name}`,
        update: `update core.${name} set ${column} = default`,
        truncate: `truncate core.${name} cascade`,
      };
      for (const statement of statements.split(" ")) {
        const message = `core.${name} keeps its rows: ${statement} refused`;
        fits(t, await run(texts[statement]!), { message: new RegExp(`^${message}$`, "i") }, message);
      }
    }
  }
  for (const column of ["party_id", "event_id", "event_seq", "coupon_id"])
    fits(t, await run(`update core.delivery set ${column} = default`), { message: /^core.delivery keeps/ }, column);
});

// The rule names that a trigger function raises.
const raised = "regexp_matches(p.prosrc, $$constraint = '(\\w+)'$$, 'g')";

t.test("Every named rule of the tables is attempted, and every attempted rule exists", async (t) => {
  const rules = await session.rows<{ name: string }>(
    `select conname as name from pg_constraint c where connamespace = 'core'::regnamespace and contype in ('c', 'u')
     union select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
     where c.relnamespace = 'core'::regnamespace and i.indisunique and not i.indisprimary
     union select m[1] from pg_proc p, ${raised} m where p.pronamespace = 'core'::regnamespace`,
  );
  const names = rules.map(({ name }) => name);
  // Only our own code writes it.
  // The second has the primary key of its table, and another column for references.
  const exceptions = ["migration_name_key", "currency_has_its_decimals"];
  const attempted = new Set(attempts.map(({ rule }) => rule));
  t.strictSame(names.filter((name) => !attempted.has(name) && !exceptions.includes(name)).sort(), []);
  const isImplicit = (rule: string) => /_pkey$|_fkey$/.test(rule);
  t.strictSame(
    [...attempted, ...exceptions].filter((rule) => !names.includes(rule) && !isImplicit(rule)),
    [],
    "no attempt names a rule that does not exist",
  );
});

// Table, row, rule, the columns that may change, and those that a trigger of another rule keeps.
const fixed: [table: string, where: string, rule: string, changing: string, identity?: string][] = [
  ["coupon", "coupon_id = :redeemed", "coupon_identity_is_fixed", "status valid_from valid_to"],
  ["redemption", "redemption_id = :reversed_redemption", "redemption_terms_are_fixed", "lock_expires_at status"],
  [
    "batch",
    "batch_id = :allocated",
    "batch_is_fixed_at_submission",
    "status minted_count body_hash mint_holder mint_worker mint_lease_until completed_at allocated_at " +
      "codes_destroyed_at expired_through suspended_at recalled_at recall_caller_id recall_reason recalled_through " +
      "recall_voided_count recall_finished_at",
  ],
  [
    "template",
    "external_id = 'tpl_fixed'",
    "template_with_batches_keeps_its_terms",
    "name distributor_id is_for_all_merchants valid_from valid_to lock_ttl_seconds created_at",
    "tenant_id template_id external_id",
  ],
  [
    "statement",
    "ready_at is null",
    "ready_statement_never_changes",
    "ready_at detail_bytes detail_sha256 summary_rows summary_bytes summary_sha256",
  ],
  [
    "credential",
    "access_key = 'ak_pos'",
    "credential_stands_for_one_caller",
    "sealed_secret secret_hash created_at revoked_at last_used_at",
  ],
];

// The triggers fire only for the columns they name, so this tries every column.
t.test("Only the columns of a row's life cycle change", async (t) => {
  for (const [table, where, rule, changing, identity = ""] of fixed) {
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
    `select g.tgname as name, c.relname as table, array(select m[1] from ${raised} m) as raises
     from pg_trigger g join pg_class c on c.oid = g.tgrelid join pg_proc p on p.oid = g.tgfoid
     where not g.tgisinternal and c.relnamespace = 'core'::regnamespace
       and g.tgfoid not in ('core.refuse_change'::regproc, 'core.keep_rows'::regproc) order by 1`,
  );
  t.ok(triggers.length > 20);
  // They refuse nothing; they record an extension, a replaced secret, and what psql moved.
  const exceptions = ["extension_is_noted", "replaced_secret_is_kept", "lock_end_is_audited"];
  exceptions.push("validity_of_a_used_coupon_is_audited");
  // See test/db/api/sandbox.test.ts and test/db/clearing.test.ts.
  exceptions.push("tenant_may_lose_rows");
  for (const { name, table, raises } of triggers.filter(({ name }) => !exceptions.includes(name))) {
    let isNeeded = false;
    for (const { rule, sql } of attempts) {
      if (isNeeded || !raises.includes(rule)) continue;
      isNeeded =
        (await run(`alter table core.${table} disable trigger ${name}; ${sql}`))?.rule !== rule &&
        (await run(sql))?.rule === rule;
    }
    t.ok(isNeeded, name);
  }
});

t.test("No row can exist twice", async (t) => {
  const tables = await session.rows<{ name: string }>(
    "select relname as name from pg_class where relnamespace = 'core'::regnamespace and relkind = 'r' order by 1",
  );
  for (const { name } of tables) {
    const again = `insert into core.${name} overriding system value select * from core.${name} limit 1`;
    t.equal((await run(again))?.sqlState, "23505", name);
  }
});

t.test("Every foreign key refuses a row that does not exist", async (t) => {
  // For these another rule fires first; they are among the attempts.
  const exceptions = ["credential_tenant_id_fkey", "test_delivery_tenant_id_party_id_fkey"];
  const references = await session.rows<{ name: string; table: string; columns: string[] }>(
    `select c.conname as name, r.relname as table,
       array(select a.attname from unnest(c.conkey) k join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k
             where cardinality(c.conkey) = 1 or a.attname <> 'tenant_id')::text[] as columns
     from pg_constraint c join pg_class r on r.oid = c.conrelid
     where c.contype = 'f' and c.connamespace = 'core'::regnamespace and c.conname <> all ($1) order by 1`,
    [exceptions],
  );
  t.ok(references.length > 30);
  for (const { name, table, columns } of references) {
    const where = columns.map((column) => `${column} is not null`).join(" and ");
    const refusal = await run(insertCopy(table, where, await dangling(table, columns)));
    fits(t, refusal, { sqlState: "23503", rule: name }, name);
  }
});

// New values for the columns of a reference, and for the columns that make a copied row distinct.
async function dangling(table: string, columns: string[]): Promise<Record<string, string>> {
  const changed = await session.rows<{ column: string; type: string }>(
    `select a.attname as column, a.atttypid::regtype::text as type from pg_attribute a
     where a.attrelid = ('core.' || $1)::regclass and a.attnum > 0
       and (a.attname = any ($2)
            or exists (
              select from pg_index i
              where i.indrelid = a.attrelid and i.indisunique and i.indpred is null
                and a.attnum = (
                  select n.attnum from unnest(i.indkey) with ordinality k (attnum, place)
                  join pg_attribute n on n.attrelid = i.indrelid and n.attnum = k.attnum
                  where n.attname <> 'tenant_id' order by k.place desc limit 1)))`,
    [table, columns],
  );
  const unknown: Record<string, (column: string) => string> = {
    uuid: () => "'11111111-1111-7111-8111-111111111111'",
    text: (column) => (column === "currency" ? "'QQQ'" : `(o.x).${column} || 'z'`),
    date: () => "'2020-01-01'",
    smallint: () => "9",
    "core.finite_time": () => "'2020-01-01'",
    bytea: (column) => `sha256((o.x).${column})`,
  };
  return Object.fromEntries(
    changed.map(({ column, type }) => [column, (unknown[type] ?? (() => "2147483647"))(column)]),
  );
}

// The columns that name a row of another table.
const nouns = `tenant party merchant store template batch coupon redemption reversal event entry credential maker
  distributor`.split(/\s+/);
const naming = [...nouns.map((noun) => `${noun}_id`), "currency"];

// By the reason: the columns without a foreign key.
const unchecked = {
  "a log that outlives its events": "delivery_attempt.event_id delivery_attempt.party_id delivery_attempt.tenant_id",
  "deleted after minutes": "nonce.credential_id nonce.tenant_id",
  "written by its own caller's call, and deleted after 90 days":
    "request.coupon_id request.merchant_id request.redemption_id request.template_id request.tenant_id",
  "a test event is in no other table": "test_delivery.event_id",
  "0 in Variant A": "feed.party_id",
  "copies of fixed values for the hot path, which report.invariants compares":
    "ledger_entry.currency redemption.currency",
  "checked by triggers, once per statement; a foreign key would query for each row and lock the row it refers to":
    "event.batch_id event.coupon_id event.party_id event.tenant_id ledger_entry.coupon_id ledger_entry.entry_id " +
    "ledger_entry.distributor_id ledger_entry.tenant_id delivery.coupon_id delivery.event_id coupon.batch_id " +
    "coupon.tenant_id feed_page.party_id feed_page.tenant_id merchant_page.merchant_id merchant_page.tenant_id " +
    "posting_page.distributor_id posting_page.tenant_id redemption.coupon_id redemption.merchant_id " +
    "redemption.tenant_id voiding.batch_id voiding.merchant_id",
};

t.test("Every column that names another row has a foreign key, apart from the listed ones", async (t) => {
  const loose = await session.rows<{ name: string }>(
    `select c.relname || '.' || a.attname as name
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'core'::regnamespace and c.relkind = 'r' and a.attidentity = ''
       and a.attname <> c.relname and a.attname <> c.relname || '_id'
       and a.attname = any ($1)
       and not exists (
         select from pg_constraint k where k.conrelid = c.oid and k.contype = 'f' and a.attnum = any (k.conkey))`,
    [naming],
  );
  t.strictSame(
    loose.map(({ name }) => name).sort(),
    Object.values(unchecked)
      .flatMap((names) => names.split(" "))
      .sort(),
  );
});

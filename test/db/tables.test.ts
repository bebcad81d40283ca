// The tables keep their rules by themselves: whatever a superuser types in psql, what would break one is refused.
// Every named check, every trigger, every unique and foreign key of core is met here at least once.
import t from "tap";
import { openSession, type Session } from "../../src/database/connect.ts";
import { tenants } from "../support/provisioning.ts";
import { newRequestId, startService } from "../support/service.ts";
import { cases, copy, id } from "./attempts.ts";

const [tenantA, , tenantB] = structuredClone(tenants) as [any, any, any];
const [template] = tenantA.templates;
tenantA.templates.push(
  { ...template, id: "tpl_unused", name: "without a batch" },
  { ...template, id: "tpl_past", valid_to: "2020-01-02T00:00:00Z" },
);
tenantA.parties[0].webhook = { url: "https://example.com/hook" };

let session: Session;

// A row of every table, coupons and batches in every state.
t.before(async () => {
  const service = await startService(t, { tenants: [tenantA, tenantB] });
  const a = service.as("ak_a");
  const { codes, couponIds, id: allocated } = await service.makeBatch(a, "tpl_fixed", 9);
  const must = async (path: string, body: object) => {
    const { status, text, json } = await a.post(path, { request_id: newRequestId(), ...body });
    if (status !== 200) throw new Error(text);
    return json;
  };
  const [issued, locked, redeemed, reversed, voided, cancelled, , , late] = codes;
  const merchant = "mch_a";
  await must("/v1/coupons/lock", { request_id: "lock", coupon: locked, merchant });
  await must("/v1/coupons/redeem", { coupon: redeemed, merchant, order_amount: 20 });
  const { redemption } = await must("/v1/coupons/redeem", { coupon: reversed, merchant });
  await must("/v1/redemptions/reverse", { redemption });
  await must("/v1/coupons/void", { coupon: voided, merchant });
  await must("/v1/coupons/lock", { request_id: "cancelled", coupon: cancelled, merchant });
  await must("/v1/coupons/cancel", { lock_request_id: "cancelled", coupon: cancelled });
  await a.post("/v1/coupons/cancel", { request_id: newRequestId(), lock_request_id: "never", coupon: issued });
  await a.post(
    "/v1/coupons/lock",
    { request_id: newRequestId(), coupon: issued, merchant: "mch_none" },
    { idempotencyKey: "one" },
  );
  const { id: completed } = await service.makeBatch(a, "tpl_scoped", 1, { isReleased: false });
  const past = await service.makeBatch(a, "tpl_past", 1);
  const {
    json: {
      batch: { external_id: pending },
    },
  } = await a.post(
    "/v1/batches",
    { request_id: newRequestId(), template: "tpl_fixed", total_count: 3 },
    { idempotencyKey: "two" },
  );
  await service.admin.rows("select admin.extend_coupon('ten_a', $1, '2098-01-01', 'a test')", [couponIds[7]]);

  session = openSession(service.address, { name: "psql" });
  t.teardown(() => session.end());
  const name = async (key: string, text: string, params: unknown[]) => {
    const [row] = await session.rows<{ key: string }>(text, params);
    id[key] = row!.key;
  };
  const byNumber =
    "select c.coupon_id::text as key from core.coupon c join core.batch b using (tenant_id, batch_id) where b.external_id = $1 and c.number = $2";
  for (const [index, key] of ["issued", "locked", "redeemed", "reversed", "voided", "cancelled", "free"].entries())
    await name(key, byNumber, [allocated, index + 1]);
  await name("past", byNumber, [past.id, 1]);
  for (const key of ["locked", "redeemed", "reversed", "cancelled"])
    await name(`${key}_red`, "select redemption_id::text as key from core.redemption where coupon_id = $1", [id[key]]);
  for (const [key, batch] of Object.entries({ allocated, completed, pending }))
    await name(key, "select batch_id::text as key from core.batch where external_id = $1", [batch]);
  for (const key of ["ten_a", "ten_b"])
    await name(key, "select tenant_id::text as key from core.tenant where external_id = $1", [key]);
  await name("distributor", "select distributor_id::text as key from core.batch where batch_id = $1", [
    id["allocated"],
  ]);

  // What the worker writes: feeds, postings, deliveries; one business day closed and ready, the one before it not.
  await session.rows("select jobs.sequence_events(1000)");
  await name("day", "select business_date::text as key from core.posting where tenant_id = $1 limit 1", [id["ten_a"]]);
  const day = [id["ten_a"], id["distributor"], id["day"]];
  await session.rows(
    `insert into core.statement (tenant_id, distributor_id, business_date, entry_count, closed_at)
     select $1, $2, $3::date - n, case n when 0 then (select count(*) from core.posting where tenant_id = $1) else 0 end, now() from generate_series(0, 1) n`,
    day,
  );
  await session.rows(
    `insert into core.statement_line (tenant_id, distributor_id, business_date, number, merchant_id, template_id, currency, redemption_count, redemption_minor, reversal_count, reversal_minor)
     select $1, $2, $3, row_number() over (), merchant_id, template_id, currency, redemption_count, redemption_minor, reversal_count, reversal_minor from rules.summarize_day($1, $2, $3)`,
    day,
  );
  await session.rows("update core.ledger_book set open_on = $3::date + 1 where tenant_id = $1 and party_id = $2", day);
  await session.rows(
    "update core.statement set ready_at = now(), detail_bytes = 1, detail_sha256 = '', summary_rows = 1, summary_bytes = 1, summary_sha256 = '' where business_date = $1",
    [id["day"]],
  );
  await session.rows(
    `insert into core.event (tenant_id, event_id, event_type, party_id, business_date, occurred_at, recorded_at)
     values ($1, gen_random_uuid(), 'reconciliation.ready', $2, $3, now(), now())`,
    day,
  );
  await session.rows(
    "select jobs.record_deliveries(tenant_id, party_id, jsonb_build_array(jsonb_build_object('event_id', event_id, 'attempt', 1, 'duration_ms', 1, 'is_taken', false))) from core.delivery limit 1",
  );
  await session.rows("insert into core.event_gap select 999999999, pg_current_xact_id()");
  await must("/v1/coupons/redeem", { coupon: late, merchant });
  await name(
    "unposted",
    "select entry_id::text as key from core.ledger_entry where entry_id not in (select entry_id from core.posting)",
    [],
  );
});

type Refusal = { state: string; by: string; message: string } | null;

// As one transaction, with what is deferred, and undone.
async function attempt(text: string): Promise<Refusal> {
  try {
    await session.run(`begin; ${text}; set constraints all immediate`);
    return null;
  } catch (error) {
    const { code, constraint_name, message } = error as { code: string; constraint_name?: string; message: string };
    return { state: code, by: constraint_name ?? message, message };
  } finally {
    await session.run("rollback");
  }
}

// A trigger that refuses any change of its table says no name: it is known by the table.
const keepers = new Map<string, string>();
const byOf = (refusal: Refusal): string | undefined => {
  const kept = /^core\.(\w+) keeps its rows: \w+ refused$/.exec(refusal?.message ?? "");
  return kept === null ? refusal?.by : keepers.get(kept[1]!);
};

t.test("what would break a rule is refused by that rule", async (t) => {
  const found = await session.rows<{ name: string; table: string }>(
    "select g.tgname as name, c.relname as table from pg_trigger g join pg_class c on c.oid = g.tgrelid where g.tgfoid = 'core.refuse_change'::regproc",
  );
  for (const { name, table } of found) keepers.set(table, name);
  for (const [by, tried, sql] of cases) t.equal(byOf(await attempt(sql())), by, `${by}: ${tried}`);
});

// The names that a trigger's function gives its refusals.
const raised = "regexp_matches(p.prosrc, $$constraint = '(\\w+)'$$, 'g')";

t.test("no named rule of the tables is left untried", async (t) => {
  const rules = await session.rows<{ name: string }>(
    `select conname as name from pg_constraint c where connamespace = 'core'::regnamespace and contype in ('c', 'u')
     union select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
     where c.relnamespace = 'core'::regnamespace and i.indisunique and not i.indisprimary
     union select m[1] from pg_proc p, ${raised} m where p.pronamespace = 'core'::regnamespace
     union select tgname from pg_trigger g where g.tgfoid = 'core.refuse_change'::regproc`,
  );
  const names = rules.map(({ name }) => name);
  // An unknown zone is an error of the server's own; the two others are numbers and names that only we write.
  const exceptions = ["time_zone_is_known", "migration_name_key", "event_event_seq_key"];
  const tried = new Set(cases.map(([by]) => by));
  t.strictSame(names.filter((name) => !tried.has(name) && !exceptions.includes(name)).sort(), []);
  t.strictSame(
    [...tried, ...exceptions].filter((by) => !names.includes(by) && !/_pkey$|_fkey$|^each_movement_is_told$/.test(by)),
    [],
    "and none is tried that is gone",
  );
  t.match(await attempt("update core.party set time_zone = 'Mars/Base'"), {
    message: 'time zone "Mars/Base" not recognized',
  });
});

// Of a granted redemption and of a coupon all is fixed but its course. The triggers fire for the columns they name.
t.test("a column of a coupon or a redemption is fixed, or it is part of its course", async (t) => {
  const fixed = [
    {
      table: "coupon",
      where: `coupon_id = '${id["redeemed"]}'`,
      by: "coupon_identity_is_fixed",
      course: ["status", "valid_from", "valid_to"],
    },
    {
      table: "redemption",
      where: `redemption_id = '${id["reversed_red"]}'`,
      by: "redemption_terms_are_fixed",
      course: ["lock_expires_at", "status"],
    },
  ];
  for (const { table, where, by, course } of fixed) {
    const columns = await session.rows<{ name: string; other: string }>(
      `select a.attname as name, case coalesce(nullif(t.typbasetype, 0), t.oid)::regtype::text
         when 'uuid' then 'gen_random_uuid()' when 'text' then $$'other'$$ when 'timestamp with time zone' then $$timestamptz '2001-01-01'$$ else format('coalesce(%s, 0) + 1', a.attname) end as other
       from pg_attribute a join pg_type t on t.oid = a.atttypid
       where a.attrelid = ('core.' || $1)::regclass and a.attnum > 0 and not a.attisdropped and a.attname <> all ($2)`,
      [table, course],
    );
    t.ok(columns.length >= 7);
    for (const { name, other } of columns)
      t.equal(
        (await attempt(`update core.${table} set ${name} = ${other} where ${where}`))?.by,
        by,
        `${table}.${name}`,
      );
  }
});

t.test("each trigger is needed: without it alone, what it refuses happens", async (t) => {
  const triggers = await session.rows<{ name: string; table: string; raises: string[] }>(
    `select g.tgname as name, c.relname as table, array(select m[1] from ${raised} m) || g.tgname::text as raises
     from pg_trigger g join pg_class c on c.oid = g.tgrelid join pg_proc p on p.oid = g.tgfoid
     where not g.tgisinternal and c.relnamespace = 'core'::regnamespace order by 1`,
  );
  t.ok(triggers.length > 30);
  // Refuses nothing, writes something down.
  const exceptions = ["extension_is_noted"];
  for (const { name, table, raises } of triggers.filter(({ name }) => !exceptions.includes(name))) {
    let isNeeded = false;
    for (const [by, , sql] of cases) {
      if (isNeeded || !raises.includes(by)) continue;
      isNeeded =
        byOf(await attempt(`alter table core.${table} disable trigger ${name}; ${sql()}`)) !== by &&
        byOf(await attempt(sql())) === by;
    }
    t.ok(isNeeded, name);
  }
});

t.test("no row can be there twice", async (t) => {
  const tables = await session.rows<{ name: string }>(
    "select relname as name from pg_class where relnamespace = 'core'::regnamespace and relkind = 'r' order by 1",
  );
  for (const { name } of tables)
    t.equal(
      (await attempt(`insert into core.${name} overriding system value select * from core.${name} limit 1`))?.state,
      "23505",
      name,
    );
});

t.test("every reference refuses what is not there", async (t) => {
  const nobody = "11111111-1111-7111-8111-111111111111";
  // The trigger that compares the variants comes first; the others are tried above, with more around them.
  const exceptions = ["credential_tenant_id_fkey", "posting_tenant_id_distributor_id_fkey"];
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
    // The columns of the reference, and those that make a copied row another one.
    const changed = await session.rows<{ column: string; type: string }>(
      `select a.attname as column, a.atttypid::regtype::text as type from pg_attribute a
       where a.attrelid = ('core.' || $1)::regclass and a.attnum > 0
         and (a.attname = any ($2) or exists (
           select from pg_index i where i.indrelid = a.attrelid and i.indisunique and i.indpred is null and i.indkey[i.indnkeyatts - 1] = a.attnum))`,
      [table, columns],
    );
    const other: Record<string, (column: string) => string> = {
      uuid: () => `'${nobody}'`,
      text: (column) => (column === "currency" ? "'QQQ'" : `(o.x).${column} || 'z'`),
      date: () => "'2020-01-01'",
    };
    const patch = changed
      .map(({ column, type }) => `'${column}', ${(other[type] ?? (() => "2147483647"))(column)}`)
      .join(", ");
    const refusal = await attempt(
      copy(table, columns.map((column) => `${column} is not null`).join(" and "), `jsonb_build_object(${patch})`),
    );
    t.match(refusal, { state: "23503", by: name }, name);
  }
});

t.test("whatever names a row of another table refers to it", async (t) => {
  const loose = await session.rows<{ name: string }>(
    `select c.relname || '.' || a.attname as name
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'core'::regnamespace and c.relkind = 'r' and a.attidentity = '' and a.attname <> c.relname and a.attname <> c.relname || '_id'
       and a.attname ~ '^(tenant|party|merchant|store|template|batch|coupon|redemption|reversal|event|entry|credential|maker|distributor)_id$|^currency$'
       and not exists (select from pg_constraint k where k.conrelid = c.oid and k.contype = 'f' and a.attnum = any (k.conkey))`,
  );
  t.strictSame(
    loose.map(({ name }) => name).sort(),
    [
      // A log that outlives what it tells of, and what is forgotten after minutes.
      "delivery_attempt.event_id",
      "delivery_attempt.party_id",
      "delivery_attempt.tenant_id",
      "nonce.credential_id",
      "nonce.tenant_id",
      // 0 in Variant A.
      "feed.party_id",
      // Copies of what is fixed in the batch and its template, on the hot path; report.invariants compares them.
      "ledger_entry.currency",
      "redemption.currency",
      // Looked at by triggers, a statement at a time (see above): a foreign key asks for each row, and locks what it refers to.
      "event.batch_id",
      "event.coupon_id",
      "event.party_id",
      "event.tenant_id",
      "ledger_entry.distributor_id",
      "ledger_entry.entry_id",
      "ledger_entry.tenant_id",
      "coupon.batch_id",
      "coupon.tenant_id",
      "feed_event.event_id",
      "feed_event.party_id",
      "feed_event.tenant_id",
      "posting.distributor_id",
      "posting.entry_id",
      "posting.tenant_id",
      "redemption.coupon_id",
      "redemption.merchant_id",
      "redemption.tenant_id",
      "voiding.merchant_id",
      // Written by the call that its caller made, and forgotten after 90 days.
      "request.tenant_id",
    ].sort(),
  );
});

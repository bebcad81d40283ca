// A twin of a tenant: a second tenant whose rows have the same keys, numbers, hashes and codes. They differ in
// tenant_id, so a statement that forgets the tenant sees, or changes, the rows of both. Only the internal numbers that
// the schema keeps unique across tenants are shifted: each batch_id, merchant_id and event_seq.
//
// A twin has the two sides of owners.ts exchanged: what is pty_m1 and mch_1 in the tenant, is pty_m2 and mch_2 in its
// twin. So a name shows whose row was read.
import { openSession } from "../../src/database/connect.ts";
import { credentialPurpose, seal } from "../../src/crypto/seal.ts";
import type { Database } from "../../src/database/types.ts";
import type { Running } from "./service.ts";
import { secretOf } from "./tenants.ts";

const other: Record<string, string> = { 1: "2", 2: "1" };

/** Names of a tenant as names of its twin. Each batch has an ID of its own, because batch IDs are unique. */
export function toTwin<Value>(value: Value): Value {
  const text = JSON.stringify(value)
    .replace(/\b(ten_|ak_)([ab])1/g, "$1$22")
    .replace(/\b(pty_[mds]|mch_|tpl_s?|[ST]|ak_[ab]2_[mds])([12])\b/g, (_, name, side) => name + other[side])
    .replace(/\bbat_[0-9a-z]{26}\b/g, "$&twin")
    .replace(/"side":([12])/g, (_, side) => `"side":${other[side]}`);
  return JSON.parse(text) as Value;
}

/** Copies a tenant. To be called once all its events are sequenced. */
export async function makeTwin(service: Running, tenant: string): Promise<void> {
  const session = openSession(service.address, { name: "psql" });
  try {
    // Foreign keys and triggers would refuse to copy history.
    await session.run("set session_replication_role = replica");
    const tables = await session.rows<{ name: string }>(
      `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
       where c.relnamespace = 'core'::regnamespace and c.relkind = 'r'`,
    );
    const [{ shift }] = (await session.rows("select last_value as shift from core.event_seq")) as [{ shift: bigint }];
    for (const { name } of tables) await copyRows(service, session, name, tenant, Number(shift));
    // The copied events are sequenced, as the original ones are.
    await session.rows("select setval('core.event_seq', $1::bigint * 2)", [String(shift)]);
    await session.rows("update core.sequencer set high_seq = $1::bigint * 2", [String(shift)]);
    // What would be the same in both tenants, because a name and its number are exchanged together, is made different.
    for (const table of ["template_merchant", "merchant_delegate"])
      await session.rows(
        `update core.${table} x
         set merchant_id = (select o.merchant_id from core.merchant o
                            where o.tenant_id = x.tenant_id and o.merchant_id <> x.merchant_id)
         from core.tenant t where t.tenant_id = x.tenant_id and t.external_id = $1`,
        [toTwin(tenant)],
      );
  } finally {
    await session.end();
  }
}

async function copyRows(
  service: Running,
  session: Pick<Database, "rows">,
  table: string,
  tenant: string,
  eventShift: number,
): Promise<void> {
  const shifts = { tenant_id: 100, batch_id: 1000, merchant_id: 1000, event_seq: eventShift };
  const rows = await session.rows<{ row: Record<string, unknown> }>(
    `select to_jsonb(x) || (
       select jsonb_object_agg(s.key, (to_jsonb(x) ->> s.key)::bigint + s.value::bigint)
       from jsonb_each_text($2::text::jsonb) s where to_jsonb(x) ? s.key
     ) as row
     from core."${table}" x join core.tenant t using (tenant_id) where t.external_id = $1`,
    [tenant, JSON.stringify(shifts)],
  );
  const copies = rows.map(({ row }) => {
    const copy = toTwin(row);
    // The list of a page.
    if (Array.isArray(copy["event_seqs"]))
      copy["event_seqs"] = copy["event_seqs"].map((seq: number) => seq + eventShift);
    if (table !== "credential") return copy;
    const key = copy["access_key"] as string;
    const sealed = seal(service.keys, credentialPurpose(key), secretOf(key)).toString("hex");
    return { ...copy, sealed_secret: `\\x${sealed}` };
  });
  // Logs count their rows for all tenants.
  const whose = ["audit", "delivery_attempt"].includes(table) ? "user" : "system";
  await session.rows(
    `insert into core."${table}" overriding ${whose} value
     select * from jsonb_populate_recordset(null::core."${table}", $1::text::jsonb)`,
    [JSON.stringify(copies)],
  );
}

export type Rows = Map<string, Map<string, number>>;

/** All rows of all tenants, by tenant and table. Omits nonces, because every call spends one. */
export async function readRows(owner: Database): Promise<Rows> {
  const tables = await owner.rows<{ name: string }>(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
     where c.relnamespace = 'core'::regnamespace and c.relkind = 'r' and c.relname <> 'nonce'`,
  );
  const parts = tables.map(({ name }) => `select tenant_id, '${name}' as name, x::text as row from core."${name}" x`);
  const rows = await owner.rows<{ tenant: string; name: string; row: string }>(
    `select coalesce(t.external_id, 'none') as tenant, r.name, r.row
     from (${parts.join(" union all ")}) r left join core.tenant t using (tenant_id)`,
  );
  const found: Rows = new Map();
  for (const { tenant, name, row } of rows) {
    const key = `${tenant} ${name}`;
    const all = found.get(key) ?? new Map<string, number>();
    all.set(row, (all.get(row) ?? 0) + 1);
    found.set(key, all);
  }
  return found;
}

/** Which rows differ, as { "ten_a1 coupon": "-1 +1" }: one row was changed. */
export function compareRows(before: Rows, after: Rows): Record<string, string> {
  const found: Record<string, string> = {};
  for (const key of [...new Set([...before.keys(), ...after.keys()])].sort()) {
    const [old, now] = [before.get(key) ?? new Map(), after.get(key) ?? new Map()];
    const gone = [...old].filter(([row]) => !now.has(row)).length;
    const added = [...now].filter(([row]) => !old.has(row)).length;
    if (gone + added > 0) found[key] = `-${gone} +${added}`;
  }
  return found;
}

export async function findChanges(owner: Database, act: () => Promise<unknown>): Promise<Record<string, string>> {
  const before = await readRows(owner);
  await act();
  return compareRows(before, await readRows(owner));
}

/** Changes of the tables of one tenant, as compareRows shows them. */
export const nameTables = (tenant: string, changes: Record<string, string>) =>
  Object.fromEntries(Object.entries(changes).map(([table, rows]) => [`${tenant} ${table}`, rows]));

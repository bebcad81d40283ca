// Twins of the tenants: second tenants whose rows have the same keys, numbers, hashes and codes. They differ in
// tenant_id, so a statement that forgets the tenant sees, or changes, the rows of both. Only the numbers that the
// schema keeps unique across tenants are shifted: each batch_id, merchant_id and event_seq, and the numbers of logs.
//
// A twin has the two sides of its tenant exchanged: what is pty_m1 and mch_1 in the tenant, is pty_m2 and mch_2 in its
// twin. So a name shows whose row was read.
import { createHash } from "node:crypto";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import { credentialPurpose, seal } from "../../src/crypto/seal.ts";
import type { Database, Session } from "../../src/database/types.ts";
import type { Scenario } from "../support/scenario.ts";
import { secretOf } from "../support/tenants.ts";
import type { Books, Row } from "./books.ts";
import type { Owner } from "./tenants.ts";

const other: Record<string, string> = { 1: "2", 2: "1" };
const shifts = { tenant_id: 100, batch_id: 1000, merchant_id: 1000 };

/** Names of a tenant as names of its twin. Batch IDs are unique, so the last digit of a twin's ID is none. */
export function toTwin<Value>(value: Value): Value {
  const text = JSON.stringify(value)
    .replace(/\b(ten_|ak_)([ab])1/g, "$1$22")
    .replace(/\b(pty_[mds]|mch_|tpl_s?|[ST]|ak_[ab]2_[mds])([12])\b/g, (_, name, side) => name + other[side])
    .replace(/\b(bat_[0-9a-z]{25})[0-9a-z]\b/g, "$1u")
    .replace(/"side":([12])/g, (_, side) => `"side":${other[side]}`)
    .replace(/\b[0-9a-f]{64}\b/g, (hash) => twinHashes.get(hash) ?? hash);
  return JSON.parse(text) as Value;
}

// By the hash of a statement's file, that of the same file with the names of the twin.
const twinHashes = new Map<string, string>();
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

/** The SHA-256 of a file, whose twin then has the right one too. */
export function hashFile(text: string): string {
  twinHashes.set(sha256(text), sha256(toTwin(text)));
  return sha256(text);
}

/** Copies all tenants. To be called once all their events are sequenced. */
export async function copyTenants({ keys }: Scenario, psql: Session): Promise<void> {
  const [sequence] = await psql.rows<{ last: number }>("select last_value::int as last from core.event_seq");
  const { last } = sequence!;
  for (const { name } of await listTables(psql)) {
    const rows = await psql.rows<{ row: Row }>(
      `select to_jsonb(x) as row from core."${name}" x where tenant_id is not null order by x`,
    );
    const copies = rows.map(({ row }) => copyRow(keys, row, { ...shifts, event_seq: last }));
    // Logs count their rows for all tenants.
    const whose = ["audit", "delivery_attempt"].includes(name) ? "user" : "system";
    await psql.rows(
      `insert into core."${name}" overriding ${whose} value
       select * from jsonb_populate_recordset(null::core."${name}", $1::text::jsonb)`,
      [JSON.stringify(copies)],
    );
  }
  await psql.rows("select setval('core.event_seq', $1)", [last * 2]);
  await psql.rows("update core.sequencer set high_seq = $1", [last * 2]);
}

function copyRow(keys: MasterKeys, row: Row, shifts: Record<string, number>): Row {
  const copy = toTwin(row);
  for (const [name, shift] of Object.entries(shifts)) if (copy[name]) copy[name] += shift;
  // The list of a page.
  if (copy.event_seqs) copy.event_seqs = copy.event_seqs.map((seq: number) => seq + shifts.event_seq!);
  const { access_key } = copy;
  if (access_key === undefined) return copy;
  const sealed = seal(keys, credentialPurpose(access_key), secretOf(access_key));
  return { ...copy, sealed_secret: `\\x${sealed.toString("hex")}` };
}

/** Enters in the books what copyTenants has copied, and returns the owners of the twins. */
export function enterTwins({ views, note }: Books, owners: Owner[]): Owner[] {
  for (const [view, rows] of Object.entries(views))
    if (view !== "master_key") for (const row of rows.slice()) note(view, toTwin(row));
  return owners.map((owner) => ({ ...toTwin(owner), number: owner.number + shifts.tenant_id }));
}

// Omits nonces, because every call spends one.
const listTables = (database: Pick<Database, "rows">) =>
  database.rows<{ name: string; has_party: boolean }>(
    `select c.relname as name,
            exists (select from pg_attribute p where p.attrelid = c.oid and p.attname = 'party_id') as has_party
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
     where c.relnamespace = 'core'::regnamespace and c.relkind = 'r' and c.relname <> 'nonce'`,
  );

// Whose party is no subscriber.
const namedOtherwise = ["credential", "merchant", "merchant_delegate", "party"];

// The rows of all tenants, counted by their contents: by tenant, table and, if they are of one, subscriber.
async function readRows(owner: Database): Promise<Map<string, Set<string>>> {
  const parts = (await listTables(owner)).map(({ name, has_party }) => {
    const party = has_party && !namedOtherwise.includes(name) ? "party_id" : "null::int";
    return `select tenant_id, ${party} as party_id, '${name}' as name, md5(x::text) as row from core."${name}" x`;
  });
  const rows = await owner.rows<{ name: string; row: string }>(
    `select concat(coalesce(t.external_id, 'none'), ' ', r.name, ' ' || p.external_id) as name, r.row
     from (${parts.join(" union all ")}) r
     left join core.tenant t using (tenant_id) left join core.party p using (tenant_id, party_id)`,
  );
  const found = Map.groupBy(rows, ({ name }) => name);
  return new Map([...found].map(([name, some]) => [name, new Set(some.map(({ row }) => row))]));
}

/** Which rows of all tenants differ after an act, as { "ten_a1 coupon": "-1 +1" }: one row was changed. */
export async function findChanges(owner: Database, act: () => Promise<unknown>): Promise<Record<string, string>> {
  const before = await readRows(owner);
  await act();
  const after = await readRows(owner);
  const names = [...new Set([...before.keys(), ...after.keys()])].sort();
  const changes = names.map((name) => {
    const [old, now] = [before.get(name) ?? new Set(), after.get(name) ?? new Set()];
    return [name, `-${old.difference(now).size} +${now.difference(old).size}`] as const;
  });
  return Object.fromEntries(changes.filter(([, rows]) => rows !== "-0 +0"));
}

/**
 * Changes of one owner's tables, as compareRows shows them, from a text such as "coupon -1 +1, event … -0 +1". "…" is
 * the distributor, "(maker)" the maker.
 */
export function ownChanges({ tenant, distributorParty, makerParty }: Owner, text: string): Record<string, string> {
  const changes = text === "" ? [] : text.split(", ");
  const rows = changes.map((change) => {
    const named = change.replace("…", distributorParty).replace("(maker)", makerParty);
    const [, table, counts] = /^(.+) (-\d+ \+\d+)$/.exec(named)!;
    return [`${tenant} ${table!}`, counts!];
  });
  return Object.fromEntries(rows);
}

/** Adds up what changes for several owners: the rows of a tenant are in one list. */
export function addChanges(all: Record<string, string>[]): Record<string, string> {
  const sums: Record<string, string> = {};
  for (const [name, rows] of all.flatMap((one) => Object.entries(one))) {
    const [before, more] = [sums[name] ?? "-0 +0", rows].map((text) => [...text.matchAll(/\d+/g)].map(Number));
    sums[name] = `-${before![0]! + more![0]!} +${before![1]! + more![1]!}`;
  }
  return sums;
}

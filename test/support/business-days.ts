// Business days in tests: distributors whose midnight comes when the test needs it.
//
// There is no test clock. A POSIX time zone such as <X>-01:02:03 can have its midnight at any second, so a distributor
// in such a zone has a real midnight now. Moved 24 hours to the east, it has the next day at once.
import type { Coupon } from "./caller.ts";
import type { Scenario } from "./scenario.ts";
import { credential, merchant, party, template } from "./tenants.ts";

export const daySeconds = 86_400;

/** The zone whose clock is `offsetSeconds` ahead of UTC. POSIX uses the opposite sign. */
export function zoneOf(offsetSeconds: number): string {
  const size = Math.abs(offsetSeconds);
  const [hours, minutes, seconds] = [Math.floor(size / 3600), Math.floor(size / 60) % 60, size % 60];
  return `<X>${offsetSeconds > 0 ? "-" : "+"}${hours}:${minutes}:${seconds}`;
}

let noon = { at: -Infinity, offset: 0 };

/**
 * The offset where it is noon, so that no midnight comes during a test. It stays the same for an hour: two calls mean
 * the same day.
 */
export function noonOffset(): number {
  const at = Math.floor(Date.now() / 1000);
  if (at >= noon.at + 3_600) noon = { at, offset: daySeconds / 2 - (at % daySeconds) };
  return noon.offset;
}

/** A zone with a name, for provisioning, where it is about noon. */
export function farFromMidnight(): string {
  const ahead = 12 - new Date().getUTCHours();
  return `Etc/GMT${ahead > 0 ? "-" : "+"}${Math.abs(ahead)}`;
}

/** The offset for which the moment (Unix seconds) is local midnight. */
export function midnightOffset(moment: number): number {
  return -(moment % daySeconds);
}

/** The UTC date of a moment, in Unix seconds. */
export const dateOf = (moment: number) => new Date(moment * 1000).toISOString().slice(0, 10);

/** The local date where it is noon, `days` from now. */
export const noonDate = (days = 0) => dateOf(Math.ceil(Date.now() / 1000) + noonOffset() + days * daySeconds);

export async function setZone({ owner }: Pick<Scenario, "owner">, party: string, zone: string): Promise<void> {
  await owner.rows("update core.party set time_zone = $2 where external_id = $1", [party, zone]);
}

/** It is noon where the party is, `days` from now. */
export const moveToNoon = (world: Pick<Scenario, "owner">, party: string, days = 0) =>
  setZone(world, party, zoneOf(noonOffset() + days * daySeconds));

/** A tenant of Variant A with `count` distributors, a credential, and templates of 7.35 off. */
export function manyDistributors(count: number, name = "many") {
  const prefix = name === "many" ? "" : name;
  const parties = Array.from({ length: count }, (_, index) => `pty_${prefix}d${index}`);
  const maker = parties[0]!;
  const merchants = [`mch_${name}`, "mch_other"];
  return {
    parties,
    tenant: {
      id: `ten_${name}`,
      name,
      variant: "A",
      parties: parties.map((id) => party(id, { time_zone: "UTC" })),
      merchants: merchants.map((id) => merchant(id, maker)),
      templates: ["tpl_one", "tpl_two"].map((id) => template(id, maker, { discount: { type: "fixed", amount: 7.35 } })),
      credentials: [credential(`ak_${name}`)],
    },
  };
}

/** Releases a batch for each distributor, so that the sequencer's next step opens its book. */
export async function openBooks(world: Scenario, parties: string[], count: number, key = "ak_many") {
  const coupons = new Map<string, Coupon[]>();
  for (const [index, distributor] of parties.entries()) {
    const name = index % 2 === 0 ? "tpl_one" : "tpl_two";
    const batch = await world.makeBatch(world.as(key), name, count, { distributor });
    coupons.set(distributor, batch.coupons);
  }
  return coupons;
}

/** SQL: closes the open day of each book, however early. Their tenants are sandboxes. */
export const closeOpenDays = `
  do $$ begin
    update core.ledger_book set open_on = open_on + 1;
    perform rules.write_statement(b.tenant_id, b.party_id, b.open_on - 1) from core.ledger_book b;
  end $$`;

export type StatementRow = {
  distributor: string;
  date: string;
  entries: number;
  is_ready: boolean;
  detail: string | null;
  summary: string | null;
};

export async function listStatements({ owner }: Pick<Scenario, "owner">): Promise<StatementRow[]> {
  const rows = await owner.rows<StatementRow>(
    `select distributor, business_date::text as date, entry_count as entries, ready_at is not null as is_ready,
            detail_sha256 as detail, summary_sha256 as summary
     from report.statement order by closed_at, distributor`,
  );
  return rows.map((row) => ({ ...row }));
}

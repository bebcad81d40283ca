// SQL statements for the attempts beside this file. They name rows of support/every-table.ts by placeholders,
// such as :issued for the ID of an issued coupon; `fill` puts the real IDs in.

/** By the rule that refuses it: what is attempted, and the statement. */
export type Attempts = Record<string, Record<string, string>>;

export function fill(sql: string, ids: Record<string, string>): string {
  return sql.replace(/(?<!:):([a-z]\w*)/g, (_, name: string) => {
    if (ids[name] === undefined) throw new Error(`no row is called :${name}`);
    return `'${ids[name]}'`;
  });
}

export function update(table: string, change: string, where = "true"): string {
  return `update core.${table} set ${change} where ${where}`;
}

export const updateCoupon = (name: string, change: string) => update("coupon", change, `coupon_id = :${name}`);
export const updateBatch = (name: string, change: string) => update("batch", change, `batch_id = :${name}`);
export const updateRedemption = (coupon: string, change: string) =>
  update("redemption", change, `redemption_id = :${coupon}_redemption`);

/** Inserts a copy of the first row that matches, with some columns changed. `changes` are SQL expressions by column. */
export function insertCopy(table: string, where: string, changes: Record<string, string>): string {
  const pairs = Object.entries(changes).map(([column, value]) => `'${column}', ${value}`);
  return `
    insert into core.${table} overriding system value
    select y.*
    from (select z as x from core.${table} z where ${where} limit 1) o,
         jsonb_populate_record(o.x, jsonb_build_object(${pairs.join(", ")})) y`;
}

export function insertCoupon(changes: Record<string, string>): string {
  return insertCopy("coupon", "coupon_id = :issued", {
    coupon_id: "gen_random_uuid()",
    lookup_hash: "gen_random_uuid()",
    batch_id: ":pending",
    number: "1",
    ...changes,
  });
}

export function insertBatch(changes: Record<string, string>): string {
  return insertCopy("batch", "batch_id = :pending", changes);
}

/** Copies the redemption of the named coupon. */
export function insertRedemption(coupon: string, changes: Record<string, string>): string {
  return insertCopy("redemption", `redemption_id = :${coupon}_redemption`, {
    redemption_id: "gen_random_uuid()",
    ...changes,
  });
}

export function insertLive(coupon: string, status: "LOCKED" | "REDEEMED"): string {
  const redeemedAt = status === "REDEEMED" ? "now()" : "null";
  return insertRedemption(coupon, { status: `'${status}'`, redeemed_at: redeemedAt, ended_at: "null" });
}

const reversalId = "'00000000-0000-7000-8000-000000000001'";

type Entry = { type?: string; id?: string; distributor?: string; amount?: number; at?: string };

/** A ledger entry for the redemption of the named coupon. */
export function insertEntry(coupon: string, entry: Entry = {}): string {
  const { type = "REDEMPTION", id = "redemption_id", distributor = ":distributor", amount = 500, at = "now()" } = entry;
  return `
    insert into core.ledger_entry
      (tenant_id, entry_id, entry_type, distributor_id, amount_minor, currency, recorded_at)
    select tenant_id, ${id}, '${type}', ${distributor}::int, ${amount}, currency, ${at}
    from core.redemption where redemption_id = :${coupon}_redemption`;
}

export function insertReversalEntry(coupon: string, amount: number): string {
  return insertEntry(coupon, { type: "REVERSAL", id: reversalId, amount });
}

type Event = { type?: string; id?: string; party?: string; coupon?: string; recordedAt?: string };

/** An event about the redemption of the named coupon. */
export function insertEvent(coupon: string, event: Event = {}): string {
  const { type = "coupon.redeemed", id = "redemption_id", recordedAt = "now()" } = event;
  const { party = ":distributor", coupon: couponId = "coupon_id" } = event;
  return `
    insert into core.event (tenant_id, event_id, event_type, party_id, coupon_id, occurred_at, recorded_at)
    select tenant_id, ${id}, '${type}', ${party}::int, ${couponId}, now(), ${recordedAt}
    from core.redemption where redemption_id = :${coupon}_redemption`;
}

export function insertReversalEvent(coupon: string, event: Event = {}): string {
  return insertEvent(coupon, { type: "coupon.reversed", id: reversalId, ...event });
}

export function insertReversal(coupon: string): string {
  return `
    insert into core.reversal
    select tenant_id, ${reversalId}, redemption_id, 0, null, now()
    from core.redemption where redemption_id = :${coupon}_redemption`;
}

export function insertVoiding(coupon: string, merchantId: string): string {
  return `
    insert into core.voiding
    select tenant_id, coupon_id, ${merchantId}, 0, null, now()
    from core.coupon where coupon_id = :${coupon}`;
}

/** Several statements of one transaction. */
export const together = (...statements: string[]) => statements.join(";\n");

/** The lock of the named coupon is redeemed, with its event and a ledger entry. */
export function redeemLock(coupon: string, entry: Entry): string {
  return together(
    updateRedemption(coupon, "status = 'REDEEMED', redeemed_at = now()"),
    updateCoupon(coupon, "status = 'REDEEMED'"),
    insertEvent(coupon),
    insertEntry(coupon, entry),
  );
}

/** The redemption of the named coupon is reversed, with its event and a ledger entry. */
export function reverseRedemption(coupon: string, { endedAt = "now()", amount = -500 }): string {
  return together(
    insertReversal(coupon),
    updateRedemption(coupon, `status = 'REVERSED', ended_at = ${endedAt}`),
    insertReversalEvent(coupon),
    insertReversalEntry(coupon, amount),
  );
}

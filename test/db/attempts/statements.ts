// SQL statements for the attempts beside this file. They name rows of support/every-table.ts by placeholders,
// such as :issued for the ID of an issued coupon; `fill` puts the real IDs in.

/** By the rule that refuses them. */
export type Attempts = Record<string, string[]>;

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

/** The columns of a ledger entry that differ from those of its redemption, as SQL expressions. */
type Entry = Partial<
  Record<"distributor" | "coupon" | "amount" | "currency" | "occurredAt" | "recordedAt" | "seq", string>
>;

/** A ledger entry, which is also the event, for the redemption of the named coupon. */
export function insertEntry(coupon: string, entry: Entry = {}, type = "REDEMPTION", id = "redemption_id"): string {
  const { distributor = ":distributor", coupon: couponId = "coupon_id", amount = "500", currency = "currency" } = entry;
  const { occurredAt = "now()", recordedAt = "now()", seq = "nextval('core.event_seq')" } = entry;
  return `
    insert into core.ledger_entry (tenant_id, distributor_id, amount_minor, event_seq, occurred_at, recorded_at,
      entry_id, coupon_id, entry_type, currency)
    select tenant_id, ${distributor}::int, ${amount}, ${seq}, ${occurredAt}, ${recordedAt}, ${id}, ${couponId},
      '${type}', ${currency}
    from core.redemption where redemption_id = :${coupon}_redemption`;
}

/** An event about the named coupon. `changes` are SQL expressions by column. */
export function insertEvent(coupon: string, changes: Record<string, string> = {}): string {
  const columns = {
    event_seq: "nextval('core.event_seq')",
    event_id: "gen_random_uuid()",
    event_type: "'coupon.expired'",
    party_id: ":distributor::int",
    coupon_id: "coupon_id",
    occurred_at: "now()",
    recorded_at: "now()",
    ...changes,
  };
  return `
    insert into core.event (tenant_id, ${Object.keys(columns).join(", ")})
    select tenant_id, ${Object.values(columns).join(", ")} from core.coupon where coupon_id = :${coupon}`;
}

export function insertReversal(coupon: string, id = reversalId, reason = "null"): string {
  return `
    insert into core.reversal
    select tenant_id, ${id}, redemption_id, 0, ${reason}, now()
    from core.redemption where redemption_id = :${coupon}_redemption`;
}

export function insertVoiding(coupon: string, merchantId: string, reason = "null", batchId = "batch_id"): string {
  return `
    insert into core.voiding
    select tenant_id, coupon_id, ${merchantId}, 0, ${reason}, now(), ${batchId}
    from core.coupon where coupon_id = :${coupon}`;
}

/** Several statements of one transaction. */
export const together = (...statements: string[]) => statements.join(";\n");

/** The lock of the named coupon is redeemed, with a ledger entry. */
export function redeemLock(coupon: string, entry: Entry): string {
  return together(
    updateRedemption(coupon, "status = 'REDEEMED', redeemed_at = now()"),
    updateCoupon(coupon, "status = 'REDEEMED'"),
    insertEntry(coupon, entry),
  );
}

/** The redemption of the named coupon is reversed at `endedAt`, with a ledger entry. */
export function reverseRedemption(coupon: string, entry: Entry, endedAt = "now()", id = reversalId): string {
  return together(
    insertReversal(coupon, id),
    updateRedemption(coupon, `status = 'REVERSED', ended_at = ${endedAt}`),
    insertEntry(coupon, { amount: "-500", occurredAt: endedAt, ...entry }, "REVERSAL", id),
  );
}

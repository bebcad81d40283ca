// Compares the rows that a life leaves in the database with those that the model expects.
import type { Database } from "../../../src/database/types.ts";
import type { Coupon } from "./coupon.ts";
import { toAmount } from "./discount.ts";
import { decimalsOf, tenant } from "./setup.ts";

// Each row as a line of text.
type Rows = { redemptions: string[]; entries: string[]; events: string[] };

// The number of the latest event. Later events have higher numbers.
export async function lastEvent(owner: Database): Promise<string> {
  const [row] = await owner.rows<{ last: string }>("select last_value as last from core.event_seq");
  return row!.last;
}

// Describes a difference; null: there is none.
export async function compareRows(owner: Database, coupons: Coupon[], since: string): Promise<string | null> {
  const given = await readRows(owner, coupons, since);
  const expected = expectRows(coupons);
  const problems = (["redemptions", "entries", "events"] as const).map((what) => {
    const [left, right] = [expected[what].sort().join("\n"), given[what].sort().join("\n")];
    return left === right ? null : `${what}: expected\n${left}\ngot\n${right}`;
  });
  return problems.find((problem) => problem !== null) ?? null;
}

async function readRows(owner: Database, coupons: Coupon[], since: string): Promise<Rows> {
  const [rows] = await owner.rows<Rows>(
    `with coupon as materialized (
       select c.tenant_id, c.coupon_id, rules.format_id('cpn', c.coupon_id) as id
       from unnest($1::text[]) u (id) join core.tenant t on t.external_id = $3
       join core.coupon c on c.tenant_id = t.tenant_id and c.coupon_id = rules.parse_id('cpn', u.id)),
     redemption as materialized (
       select r.* from coupon c join core.redemption r on r.tenant_id = c.tenant_id and r.coupon_id = c.coupon_id)
     select
       array(select concat_ws(' ', v.redemption, v.coupon, v.status, v.merchant, v.lock_request_id, v.discount_amount)
             from redemption r
             join report.redemption v on v.tenant_id = r.tenant_id and v.redemption_key = r.redemption_id
            ) as redemptions,
       array(select concat_ws(' ', c.id, l.entry_type, l.amount_minor, l.currency)
             from core.ledger_entry l join coupon c on c.tenant_id = l.tenant_id and c.coupon_id = l.coupon_id
             where l.event_seq > $2) as entries,
       array(select concat_ws(' ', c.id, row_number() over (partition by c.id order by e.event_seq), e.event_type,
                             x.redemption)
             from rules.event e join coupon c on c.tenant_id = e.tenant_id and c.coupon_id = e.coupon_id
             join report.event x on x.event_seq = e.event_seq
             where e.event_seq > $2) as events`,
    [coupons.map(({ id }) => id), since, tenant],
  );
  return rows!;
}

function expectRows(coupons: Coupon[]): Rows {
  const rows: Rows = { redemptions: [], entries: [], events: [] };
  for (const { id, kind, redemptions, events } of coupons) {
    const { currency } = kind;
    rows.events.push(...events.map((event, index) => `${id} ${index + 1} ${event}`));
    for (const { id: redemption, status, isPastEnd, merchant, lockId, minor } of redemptions) {
      const stored = status === "LOCKED" && isPastEnd ? "LAPSED" : status;
      const amount = toAmount(minor, currency).toFixed(decimalsOf[currency]);
      rows.redemptions.push([redemption, id, stored, merchant, lockId, amount].join(" "));
      if (status === "REDEEMED" || status === "REVERSED") rows.entries.push(`${id} REDEMPTION ${minor} ${currency}`);
      if (status === "REVERSED") rows.entries.push(`${id} REVERSAL ${0 - minor} ${currency}`);
    }
  }
  return rows;
}

// What a test inspects in the database: changed tables, the history of one coupon, broken invariants. See also
// state.ts.
import type { Database } from "../../src/database/types.ts";

// Compares two results of readState.
export function changedTables(before: Record<string, string>, after: Record<string, string>): string[] {
  return Object.keys(after)
    .filter((name) => after[name] !== before[name])
    .sort();
}

export type CouponHistory = {
  status: string;
  // In the order in which they happened.
  redemptions: string[];
  amounts: number[];
  events: { type: string; party: string; redemption: string | null }[];
};

// Statuses are those that the tables store.
export async function readCouponHistory(owner: Database, couponId: string): Promise<CouponHistory> {
  const [row] = await owner.rows<CouponHistory>(
    `select c.status,
       array(select r.status from core.redemption r where (r.tenant_id, r.coupon_id) = (c.tenant_id, c.coupon_id)
             order by r.started_at) as redemptions,
       array(select l.amount_minor::int from core.ledger_entry l
             left join core.reversal v on (v.tenant_id, v.reversal_id) = (l.tenant_id, l.entry_id)
             join core.redemption r on r.tenant_id = l.tenant_id
               and r.redemption_id = coalesce(v.redemption_id, l.entry_id)
             where (r.tenant_id, r.coupon_id) = (c.tenant_id, c.coupon_id) order by l.recorded_at) as amounts,
       (select coalesce(jsonb_agg(jsonb_build_object('type', e.event_type, 'party', p.external_id,
               'redemption', x.redemption) order by e.event_seq), '[]')
        from rules.event e join core.party p using (tenant_id, party_id) join report.event x using (event_seq)
        where (e.tenant_id, e.coupon_id) = (c.tenant_id, c.coupon_id)) as events
     from core.coupon c where c.coupon_id = rules.parse_id('cpn', $1)`,
    [couponId],
  );
  return row!;
}

// Each broken invariant with its tenant and subject; at most 20.
export async function findBrokenInvariants(database: Pick<Database, "rows">): Promise<string[]> {
  const rows = await database.rows<{ found: string }>(
    "select format('%s (%s %s)', invariant, tenant, subject) as found from report.invariants limit 20",
  );
  return rows.map(({ found }) => found);
}

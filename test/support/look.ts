// What a test looks at in the database: the tables that changed, the story of one coupon, and what must hold
// whatever happened. See state.ts for what everything is.
import type { Database } from "../../src/database.ts";

// Of two results of readState.
export function changedTables(before: Record<string, string>, after: Record<string, string>): string[] {
  return Object.keys(after).filter((name) => after[name] !== before[name]).sort();
}

export type Story = {
  status: string;
  // In the order in which they happened.
  redemptions: string[];
  amounts: number[];
  events: { type: string; party: string; redemption: string | null }[];
};

// A coupon as it is written down; statuses are the stored ones.
export async function readStory(owner: Database, couponId: string): Promise<Story> {
  const [row] = await owner.rows<Story>(
    `select c.status,
       array(select r.status from core.redemption r where (r.tenant_id, r.coupon_id) = (c.tenant_id, c.coupon_id)
             order by r.started_at) as redemptions,
       array(select l.amount_minor::int from core.ledger_entry l
             join core.redemption r using (tenant_id, redemption_id)
             where (r.tenant_id, r.coupon_id) = (c.tenant_id, c.coupon_id) order by l.recorded_at) as amounts,
       (select coalesce(jsonb_agg(jsonb_build_object('type', e.event_type, 'party', p.external_id,
               'redemption', rules.external_id('red', e.redemption_id)) order by e.event_seq), '[]')
        from core.event e join core.party p using (tenant_id, party_id)
        where (e.tenant_id, e.coupon_id) = (c.tenant_id, c.coupon_id)) as events
     from core.coupon c where c.coupon_id = rules.internal_id('cpn', $1)`,
    [couponId],
  );
  return row!;
}

// Sentences that must never be true, each with what it is true of. Nothing: all is well.
export async function findContradictions(owner: Database): Promise<string[]> {
  const rows = await owner.rows<{ found: string }>(
    `with live as (
       select tenant_id, coupon_id, count(*) as many, min(status) as status
       from core.redemption where status in ('LOCKED', 'REDEEMED') group by 1, 2),
     money as (
       select r.tenant_id, r.redemption_id, r.status, r.discount_minor,
         count(l.entry_id) as entries, coalesce(sum(l.amount_minor), 0) as total
       from core.redemption r left join core.ledger_entry l using (tenant_id, redemption_id)
       group by 1, 2, 3, 4)
     select format('coupon %s has %s live redemptions', coupon_id, many) as found from live where many > 1
     union all
     select format('coupon %s is %s, its live redemption %s', c.coupon_id, c.status, l.status)
     from core.coupon c left join live l using (tenant_id, coupon_id)
     where case c.status
       when 'LOCKED' then l.status is distinct from 'LOCKED'
       when 'REDEEMED' then l.status is distinct from 'REDEEMED' and (l.status is not null or not exists (
         select from core.redemption r
         where (r.tenant_id, r.coupon_id, r.status) = (c.tenant_id, c.coupon_id, 'REVERSED')))
       else l.status is not null end
     union all
     select format('redemption %s is %s, its %s entries sum up to %s', redemption_id, status, entries, total) from money
     where (entries, total) is distinct from (case status
       when 'REDEEMED' then (1::bigint, discount_minor::numeric)
       when 'REVERSED' then (2::bigint, 0::numeric)
       else (0::bigint, 0::numeric) end)
     union all
     select format('redemption %s has %s times %s', r.redemption_id, count(e.event_id), t.event_type)
     from core.redemption r
     cross join (values ('coupon.redeemed'), ('coupon.reversed')) t (event_type)
     left join core.event e on (e.tenant_id, e.redemption_id, e.event_type) = (r.tenant_id, r.redemption_id, t.event_type)
     group by r.redemption_id, r.status, t.event_type
     having count(e.event_id) <> case
       when r.status = 'REVERSED' or (r.status = 'REDEEMED' and t.event_type = 'coupon.redeemed') then 1 else 0 end
     union all
     select format('coupon %s is %s, with %s events coupon.voided', c.coupon_id, c.status, count(e.event_id))
     from core.coupon c
     left join core.event e on (e.tenant_id, e.coupon_id, e.event_type) = (c.tenant_id, c.coupon_id, 'coupon.voided')
     group by c.coupon_id, c.status having count(e.event_id) <> case c.status when 'VOIDED' then 1 else 0 end
     union all
     select format('request %s granted %s redemptions and is recorded as %s', r.lock_request_id, count(*), min(q.http_status))
     from core.redemption r
     left join core.request q on (q.tenant_id, q.caller_id, q.request_id) = (r.tenant_id, r.caller_id, r.lock_request_id)
     group by r.tenant_id, r.caller_id, r.lock_request_id having count(*) > 1 or min(q.http_status) is distinct from 200
     union all
     select format('batch %s counts %s coupons and has %s', b.external_id, b.minted_count, count(c.coupon_id))
     from core.batch b left join core.coupon c using (tenant_id, batch_id)
     group by b.external_id, b.minted_count having count(c.coupon_id) <> b.minted_count`,
  );
  return rows.map(({ found }) => found);
}

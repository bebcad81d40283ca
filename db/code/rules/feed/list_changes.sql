-- Appends redemptions and reversals to the lists of their merchants: one page for each merchant, in
-- the order of their numbers. It begins after the last page or, after a restore or the reset of a
-- sandbox, after rules.find_feed_base.
create or replace function rules.list_changes(p_events rules.event[]) returns void
language plpgsql volatile as $$
begin
  insert into core.merchant_page
    (tenant_id, merchant_id, first_position, recorded_from, recorded_through, event_seqs)
  select c.tenant_id, c.merchant_id,
         greatest(coalesce(b.next_position, 1), rules.find_feed_base(c.tenant_id) + 1),
         c.recorded_from, greatest(c.recorded_through, b.recorded_through), c.event_seqs
  from (
    select r.tenant_id, r.merchant_id, min(e.recorded_at) as recorded_from,
           max(e.recorded_at) as recorded_through,
           array_agg(e.event_seq order by e.event_seq) as event_seqs
    from unnest(p_events) e
    join core.redemption r
      on r.tenant_id = e.tenant_id
         and r.redemption_id = case e.event_type
           when 'coupon.redeemed' then e.event_id
           when 'coupon.reversed' then core.find_reversed_redemption(e.tenant_id, e.event_id)
         end
    group by r.tenant_id, r.merchant_id) c
  left join lateral (
    select p.first_position + cardinality(p.event_seqs) as next_position, p.recorded_through
    from core.merchant_page p
    where p.tenant_id = c.tenant_id and p.merchant_id = c.merchant_id
    order by p.first_position desc
    limit 1) b on true;
end
$$;

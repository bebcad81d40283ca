-- A coupon event goes to the distributor of the coupon's batch, a batch event to the maker or the
-- distributor. A redeemed or reversed event also belongs to a redemption of the same coupon.
create or replace view rules.event_is_for_the_right_party as
select 'event is for the right party' as law, e.tenant_id,
       rules.format_id('evt', e.event_id) as subject
from core.event e
left join core.coupon c on c.tenant_id = e.tenant_id and c.coupon_id = e.coupon_id
left join core.batch b
  on b.tenant_id = e.tenant_id and b.batch_id = coalesce(e.batch_id, c.batch_id)
left join core.reversal v on v.tenant_id = e.tenant_id and v.reversal_id = e.event_id
left join core.redemption r
  on r.tenant_id = e.tenant_id and r.redemption_id = coalesce(v.redemption_id, e.event_id)
left join core.party p on p.tenant_id = e.tenant_id and p.party_id = e.party_id
where (case
  when e.business_date is not null then p.party_id is not null
  when e.batch_id is not null then e.party_id in (b.maker_id, b.distributor_id)
  when e.event_type in ('coupon.redeemed', 'coupon.reversed')
    then e.party_id = b.distributor_id
         and r.coupon_id = e.coupon_id
         and (e.event_type = 'coupon.reversed') = (v.reversal_id is not null)
  else e.party_id = b.distributor_id
end) is not true;
comment on view rules.event_is_for_the_right_party is
  'Events that name the wrong party, coupon or redemption.';

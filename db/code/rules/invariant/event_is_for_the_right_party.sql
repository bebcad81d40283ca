create or replace view rules.event_is_for_the_right_party as
select 'event is for the right party' as invariant, e.tenant_id,
       rules.format_id('evt', e.event_id) as subject
from rules.event e
left join core.coupon c on c.tenant_id = e.tenant_id and c.coupon_id = e.coupon_id
left join core.batch b
  on b.tenant_id = e.tenant_id and b.batch_id = coalesce(e.batch_id, c.batch_id)
left join core.party p on p.tenant_id = e.tenant_id and p.party_id = e.party_id
where (case
  when e.business_date is not null then p.party_id is not null
  when e.batch_id is not null then e.party_id in (b.maker_id, b.distributor_id)
  else e.party_id = b.distributor_id
end) is not true;
comment on view rules.event_is_for_the_right_party is
  'Events that name the wrong party, or a coupon or batch that does not exist. A coupon event '
  'goes to the distributor of the coupon''s batch, a batch event to the maker or the '
  'distributor.';

create or replace view rules.delivery_is_of_an_event as
select 'delivery is of an event' as invariant, d.tenant_id,
  rules.format_id('evt', d.event_id) as subject
from core.delivery d
left join rules.event e on e.tenant_id = d.tenant_id and e.event_id = d.event_id
where (e.event_seq, e.party_id) is distinct from (d.event_seq, d.party_id)
   or d.coupon_id <> e.coupon_id
   or d.coupon_id is not null and e.coupon_id is null;
comment on view rules.delivery_is_of_an_event is
  'Deliveries without an event, or with the number, the party or the coupon of another one.';

create or replace view rules.voided_event_has_voided_coupon as
select 'voided event has voided coupon' as invariant, e.tenant_id,
       rules.format_id('evt', e.event_id) as subject
from core.event e
left join core.coupon c on c.tenant_id = e.tenant_id and c.coupon_id = e.coupon_id
left join core.voiding v on v.tenant_id = e.tenant_id and v.coupon_id = e.coupon_id
where e.event_type = 'coupon.voided'
  and (c.status is distinct from 'VOIDED' or v.voided_at <> e.occurred_at);
comment on view rules.voided_event_has_voided_coupon is
  'Events coupon.voided of a coupon that is not VOIDED, or was voided at another time.';

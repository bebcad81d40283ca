create or replace view rules.expired_or_voided_coupon_has_its_event as
select 'expired or voided coupon has its event' as invariant, c.tenant_id,
       rules.format_id('cpn', c.coupon_id) as subject
from core.coupon c
where c.status in ('EXPIRED', 'VOIDED')
  and not exists (
    select from core.event e
    where e.tenant_id = c.tenant_id
      and e.coupon_id = c.coupon_id
      and e.event_type =
          case c.status when 'EXPIRED' then 'coupon.expired' else 'coupon.voided' end);
comment on view rules.expired_or_voided_coupon_has_its_event is
  'EXPIRED and VOIDED coupons that have no such event.';

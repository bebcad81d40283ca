create or replace view rules.used_coupon_is_released as
select 'used coupon is released' as invariant, c.tenant_id,
       rules.format_id('cpn', c.coupon_id) as subject
from core.coupon c
join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
where c.status in ('LOCKED', 'REDEEMED', 'EXPIRED') and b.status <> 'ALLOCATED';
comment on view rules.used_coupon_is_released is
  'Coupons that were locked, redeemed or expired before their batch was released.';

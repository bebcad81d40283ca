create or replace view rules.voided_coupon_has_voiding as
select 'voided coupon has voiding' as invariant, c.tenant_id,
       rules.format_id('cpn', c.coupon_id) as subject
from core.coupon c
where (c.status = 'VOIDED') <> exists (
  select
  from core.voiding v
  where v.tenant_id = c.tenant_id and v.coupon_id = c.coupon_id and v.batch_id = c.batch_id);
comment on view rules.voided_coupon_has_voiding is
  'Coupons that are VOIDED without a voiding, or have a voiding without being VOIDED, or one '
  'that names another batch.';

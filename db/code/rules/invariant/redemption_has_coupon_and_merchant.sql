create or replace view rules.redemption_has_coupon_and_merchant as
select 'redemption has coupon and merchant' as invariant, r.tenant_id,
       rules.format_id('red', r.redemption_id) as subject
from core.redemption r
left join core.coupon c on c.tenant_id = r.tenant_id and c.coupon_id = r.coupon_id
left join core.merchant m on m.tenant_id = r.tenant_id and m.merchant_id = r.merchant_id
-- equivalent mutant (column): both are null if there is no row
where c.coupon_id is null or m.merchant_id is null;
comment on view rules.redemption_has_coupon_and_merchant is
  'Redemptions whose coupon or merchant does not exist.';

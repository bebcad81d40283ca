create or replace view rules.coupon_has_one_live_redemption as
select 'coupon has one live redemption' as invariant, r.tenant_id,
       rules.format_id('cpn', r.coupon_id) as subject
from core.redemption r
where r.status in ('LOCKED', 'REDEEMED')
group by r.tenant_id, r.coupon_id
having count(*) > 1;
comment on view rules.coupon_has_one_live_redemption is
  'Coupons with more than one live lock or redemption.';

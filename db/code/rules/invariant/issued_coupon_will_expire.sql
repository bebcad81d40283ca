create or replace view rules.issued_coupon_will_expire as
select 'issued coupon will expire' as invariant, c.tenant_id,
       rules.format_id('cpn', c.coupon_id) as subject
from core.batch b
join core.coupon c on c.tenant_id = b.tenant_id and c.batch_id = b.batch_id
left join core.coupon_extension x on x.tenant_id = c.tenant_id and x.coupon_id = c.coupon_id
where b.expired_through > 0
  and c.number <= b.expired_through
  and c.status = 'ISSUED'
  and x.coupon_id is null;
comment on view rules.issued_coupon_will_expire is
  'Coupons that the expiry job has passed, but that are ISSUED without an extension.';

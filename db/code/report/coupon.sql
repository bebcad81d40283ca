-- To find one coupon quickly, search by its key, which is indexed:
-- where tenant_id = … and coupon_key = report.parse_id('cpn_…').
create or replace view report.coupon as
select t.external_id as tenant, rules.format_id('cpn', c.coupon_id) as coupon,
       rules.derive_status(
         c.status, c.valid_to, r.lock_expires_at, b.status = 'ALLOCATED', t.variant,
         clock_timestamp()) as status,
       c.status::text as stored_status, b.external_id as batch, c.number, x.external_id as template,
       rules.format_id('red', r.redemption_id) as live_redemption, r.lock_expires_at::timestamptz,
       c.valid_from::timestamptz, c.valid_to::timestamptz, c.created_at,
       c.tenant_id, c.coupon_id as coupon_key
from core.coupon c
join core.tenant t using (tenant_id)
join core.batch b using (tenant_id, batch_id)
join core.template x using (tenant_id, template_id)
left join core.redemption r
  on r.tenant_id = c.tenant_id and r.coupon_id = c.coupon_id and r.status in ('LOCKED', 'REDEEMED');
comment on view report.coupon is
  'Coupons with their current status. The database does not have their codes.';
comment on column report.coupon.status is
  'The status that callers see now; stored_status is what was last written.';

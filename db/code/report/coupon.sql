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
comment on view report.coupon is '@primaryKey tenant,coupon
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,batch) references report.batch (tenant,batch)
@foreignKey (tenant,template) references report.template (tenant,template)
@foreignKey (tenant,live_redemption) references report.redemption (tenant,redemption)
Coupons with their current status. The database does not have their codes.';
comment on column report.coupon.tenant is 'External ID, ten_….';
comment on column report.coupon.coupon is 'External ID, cpn_…. Never the code.';
comment on column report.coupon.status is
  'The status that callers see now: CREATED (Variant B, not released), ISSUED, LOCKED, REDEEMED, '
  'EXPIRED or VOIDED.';
comment on column report.coupon.stored_status is
  'As last written. A passed end of a lock or a validity shows only after a job has run.';
comment on column report.coupon.batch is 'External ID, bat_….';
comment on column report.coupon.number is '1 to total_count of its batch, without gaps.';
comment on column report.coupon.template is 'External ID, tpl_….';
comment on column report.coupon.live_redemption is
  'External ID of its lock or redemption, red_…. Null: neither locked nor redeemed.';
comment on column report.coupon.lock_expires_at is
  'End of the lock of live_redemption; the lock counts as gone from then on. Null: none.';
comment on column report.coupon.valid_from is 'First moment of the validity.';
comment on column report.coupon.valid_to is
  'First moment after the validity; admin.extend_coupon may have moved it.';
comment on column report.coupon.created_at is 'When it was minted.';
comment on column report.coupon.tenant_id is
  'Internal key of the tenant, the first column of every index.';
comment on column report.coupon.coupon_key is
  'UUID of coupon, for searches: coupon_key = report.parse_id(''cpn_…'').';

-- Subqueries of single columns look up what few coupons need, so counting a batch reads its coupons
-- and, for the locked ones, their locks. `= any (array[…])` is explained in ledger.sql: here it
-- keeps a question about a batch from reading all coupons.
create or replace view report.coupon as
select t.external_id as tenant, rules.format_id('cpn', c.coupon_id) as coupon,
       rules.derive_status(
         c.status, c.valid_to,
         case c.status when 'LOCKED' then (
           select r.lock_expires_at
           from core.redemption r
           where r.coupon_id = c.coupon_id and r.tenant_id = c.tenant_id and r.ended_at is null)
         end,
         b.status = 'ALLOCATED', t.variant, statement_timestamp()) as status,
       c.status::text as stored_status, b.external_id as batch, c.number, x.external_id as template,
       (select rules.format_id('red', r.redemption_id)
        from core.redemption r
        where r.coupon_id = c.coupon_id and r.tenant_id = c.tenant_id and r.ended_at is null)
         as live_redemption,
       (select r.lock_expires_at::timestamptz
        from core.redemption r
        where r.coupon_id = c.coupon_id and r.tenant_id = c.tenant_id and r.ended_at is null)
         as lock_expires_at,
       c.valid_from::timestamptz, c.valid_to::timestamptz, c.created_at,
       c.tenant_id, c.coupon_id as coupon_key,
       (select r.redemption_id
        from core.redemption r
        where r.coupon_id = c.coupon_id and r.tenant_id = c.tenant_id and r.ended_at is null)
         as live_redemption_key
from core.coupon c
left join core.batch b
  on b.batch_id = any (array[c.batch_id]) and c.batch_id = any (array[b.batch_id])
left join core.tenant t on t.tenant_id = c.tenant_id
left join core.template x on x.tenant_id = b.tenant_id and x.template_id = b.template_id;
comment on view report.coupon is '@primaryKey tenant_id,coupon_key
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,batch) references report.batch (tenant,batch)
@foreignKey (tenant,template) references report.template (tenant,template)
@foreignKey (tenant_id,live_redemption_key) '
'references report.redemption (tenant_id,redemption_key)
Coupons with their current status. The database does not have their codes. Fast:
report.find_coupon(''cpn_…''); a batch, also with a number; order by coupon_key, which is the
order of creation. Counting a batch by status reads each of its coupons once.';
comment on column report.coupon.tenant is 'External ID, ten_….';
comment on column report.coupon.coupon is 'External ID, cpn_…. Never the code.';
comment on column report.coupon.status is
  'The status that callers see now: CREATED (Variant B, not released), ISSUED, LOCKED, REDEEMED, '
  'EXPIRED or VOIDED.';
comment on column report.coupon.stored_status is
  'As last written. The end of a lock or a validity shows only after a job has run.';
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
comment on column report.coupon.tenant_id is 'Internal key of the tenant.';
comment on column report.coupon.coupon_key is
  'UUID of coupon, for searches: coupon_key = report.parse_id(''cpn_…'').';
comment on column report.coupon.live_redemption_key is
  'UUID of live_redemption. Null where that is null.';

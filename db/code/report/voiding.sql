create or replace view report.voiding as
select t.external_id as tenant, rules.format_id('cpn', v.coupon_id) as coupon,
       m.external_id as merchant, p.external_id as caller, v.reason, v.voided_at::timestamptz,
       v.tenant_id, v.coupon_id as coupon_key
from core.voiding v
left join core.tenant t using (tenant_id)
left join core.merchant m using (tenant_id, merchant_id)
left join core.party p on p.tenant_id = v.tenant_id and p.party_id = v.caller_id;
comment on view report.voiding is '@primaryKey tenant_id,coupon_key
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant_id,coupon_key) references report.coupon (tenant_id,coupon_key)
@foreignKey (tenant,merchant) references report.merchant (tenant,merchant)
@foreignKey (tenant,caller) references report.party (tenant,party)
Voided coupons with merchant, caller and reason. No merchant: an administrator voided it, or the
recall of its batch. Fast:
order by voided_at; a range of voided_at; coupon_key = report.parse_id(''cpn_…'').';
comment on column report.voiding.tenant is 'External ID, ten_….';
comment on column report.voiding.coupon is 'External ID, cpn_…. Never the code.';
comment on column report.voiding.merchant is
  'External ID, mch_…. Null: an administrator voided it, or the recall of its batch.';
comment on column report.voiding.caller is
  'External ID of the calling party, pty_…. Null: the tenant (Variant A) or an administrator.';
comment on column report.voiding.reason is 'As the caller gave it. Null: none.';
comment on column report.voiding.voided_at is 'By the clock of the database.';
comment on column report.voiding.tenant_id is
  'Internal key of the tenant.';
comment on column report.voiding.coupon_key is
  'UUID of coupon, for searches: coupon_key = report.parse_id(''cpn_…'').';

create or replace view report.voiding as
select t.external_id as tenant, rules.format_id('cpn', v.coupon_id) as coupon,
       m.external_id as merchant, p.external_id as caller, v.reason, v.voided_at::timestamptz
from core.voiding v
join core.tenant t using (tenant_id)
left join core.merchant m using (tenant_id, merchant_id)
left join core.party p on p.tenant_id = v.tenant_id and p.party_id = v.caller_id;
comment on view report.voiding is
  'Voided coupons with merchant, caller and reason. No merchant: an administrator voided it.';

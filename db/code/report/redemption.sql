create or replace view report.redemption as
select t.external_id as tenant, rules.format_id('red', r.redemption_id) as redemption,
       case
         when r.status = 'LOCKED' and r.lock_expires_at <= clock_timestamp() then 'LAPSED'
         else r.status
       end as status,
       r.status as stored_status, rules.format_id('cpn', r.coupon_id) as coupon,
       m.external_id as merchant, p.external_id as caller, r.lock_request_id::text,
       rules.format_amount(r.discount_minor, c.decimals, 'major') as discount_amount,
       rules.format_amount(r.order_minor, c.decimals, 'major') as order_amount, r.currency,
       r.store, r.terminal, r.order_id, r.started_at::timestamptz, r.lock_expires_at::timestamptz,
       r.redeemed_at::timestamptz, r.ended_at::timestamptz,
       rules.format_id('rvs', v.reversal_id) as reversal, v.reason as reversal_reason,
       r.tenant_id, r.redemption_id as redemption_key, r.coupon_id as coupon_key
from core.redemption r
join core.tenant t using (tenant_id)
join core.currency c using (currency)
join core.merchant m using (tenant_id, merchant_id)
left join core.party p on p.tenant_id = r.tenant_id and p.party_id = r.caller_id
left join core.reversal v on v.tenant_id = r.tenant_id and v.redemption_id = r.redemption_id;
comment on view report.redemption is
  'Locks and redemptions with their current status; amounts in major units.';

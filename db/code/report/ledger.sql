-- To find one entry quickly, search by its key, which is indexed:
-- where tenant_id = … and entry_key = report.parse_id('led_…').
create or replace view report.ledger as
select t.external_id as tenant, rules.format_id('led', l.entry_id) as entry, l.entry_type::text,
       rules.format_id('red', l.redemption_id) as redemption,
       rules.format_id('rvs', l.reversal_id) as reversal,
       rules.format_id('cpn', l.coupon_id) as coupon, b.external_id as batch,
       x.external_id as template, m.external_id as merchant, d.external_id as distributor,
       l.store, l.terminal, l.order_id,
       rules.format_amount(l.order_minor, c.decimals, 'major') as order_amount,
       rules.format_amount(l.amount_minor, c.decimals, 'major') as discount_amount, l.currency,
       l.occurred_at::timestamptz, l.recorded_at::timestamptz, l.tenant_id, l.entry_id as entry_key
from rules.ledger_entry_detail l
join core.tenant t using (tenant_id)
join core.currency c using (currency)
join core.coupon k on k.tenant_id = l.tenant_id and k.coupon_id = l.coupon_id
join core.batch b on b.tenant_id = k.tenant_id and b.batch_id = k.batch_id
join core.template x on x.tenant_id = b.tenant_id and x.template_id = b.template_id
join core.merchant m on m.tenant_id = l.tenant_id and m.merchant_id = l.merchant_id
join core.party d on d.tenant_id = l.tenant_id and d.party_id = l.distributor_id;
comment on view report.ledger is
  'Redemptions and reversals as ledger entries, negative for reversals; amounts in major units.';

create or replace view report.ledger as
select t.external_id as tenant, rules.format_id('led', l.entry_id) as entry, l.entry_type::text,
       rules.format_id('red', r.redemption_id) as redemption,
       rules.format_id('rvs', v.reversal_id) as reversal,
       rules.format_id('cpn', r.coupon_id) as coupon, b.external_id as batch, x.external_id as template,
       m.external_id as merchant, d.external_id as distributor, r.store, r.terminal, r.order_id,
       rules.format_amount(r.order_minor, c.decimals, 'major') as order_amount,
       rules.format_amount(l.amount_minor, c.decimals, 'major') as discount_amount, l.currency,
       coalesce(v.reversed_at, r.redeemed_at)::timestamptz as occurred_at, l.recorded_at::timestamptz, l.tenant_id, l.entry_id as entry_key
from core.ledger_entry l
join core.tenant t using (tenant_id)
join core.currency c using (currency)
left join core.reversal v on v.tenant_id = l.tenant_id and v.reversal_id = l.entry_id
join core.redemption r on r.tenant_id = l.tenant_id and r.redemption_id = coalesce(v.redemption_id, l.entry_id)
join core.coupon k on k.tenant_id = r.tenant_id and k.coupon_id = r.coupon_id
join core.batch b on b.tenant_id = k.tenant_id and b.batch_id = k.batch_id
join core.template x on x.tenant_id = b.tenant_id and x.template_id = b.template_id
join core.merchant m on m.tenant_id = r.tenant_id and m.merchant_id = r.merchant_id
join core.party d on d.tenant_id = l.tenant_id and d.party_id = l.distributor_id;
comment on view report.ledger is 'Money movements, negative for reversals; amounts in major units.';

create or replace view report.statement_line as
select t.external_id as tenant, d.external_id as distributor, l.business_date, l.number,
       m.external_id as merchant, x.external_id as template, l.currency,
       l.redemption_count,
       rules.format_amount(l.redemption_minor, c.decimals, 'major') as redemption_amount,
       l.reversal_count,
       rules.format_amount(l.reversal_minor, c.decimals, 'major') as reversal_amount,
       rules.format_amount(
         l.redemption_minor + l.reversal_minor, c.decimals, 'major') as net_amount
from core.statement_line l
join core.tenant t using (tenant_id)
join core.currency c using (currency)
join core.party d on d.tenant_id = l.tenant_id and d.party_id = l.distributor_id
join core.merchant m on m.tenant_id = l.tenant_id and m.merchant_id = l.merchant_id
join core.template x on x.tenant_id = l.tenant_id and x.template_id = l.template_id;
comment on view report.statement_line is
  'Summaries of closed business days; amounts in major units.';

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
left join core.tenant t using (tenant_id)
left join core.currency c using (currency)
left join core.party d on d.tenant_id = l.tenant_id and d.party_id = l.distributor_id
left join core.merchant m on m.tenant_id = l.tenant_id and m.merchant_id = l.merchant_id
left join core.template x on x.tenant_id = l.tenant_id and x.template_id = l.template_id;
comment on view report.statement_line is '@primaryKey tenant,distributor,business_date,number
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,distributor,business_date) '
'references report.statement (tenant,distributor,business_date)
@foreignKey (tenant,merchant) references report.merchant (tenant,merchant)
@foreignKey (tenant,template) references report.template (tenant,template)
Summaries of closed business days; amounts in major units. Fast: a distributor with a range of
business_date.';
comment on column report.statement_line.tenant is 'External ID, ten_….';
comment on column report.statement_line.distributor is
  'External ID of the party that gets the statements, pty_….';
comment on column report.statement_line.business_date is
  'Local day in the distributor''s time zone (report.party), 23 to 25 hours long.';
comment on column report.statement_line.number is
  'Line in summary.csv of that day, 1 to n without gaps.';
comment on column report.statement_line.merchant is 'External ID, mch_….';
comment on column report.statement_line.template is 'External ID, tpl_….';
comment on column report.statement_line.currency is
  'ISO 4217 code. It sets the decimals of the amounts in this row.';
comment on column report.statement_line.redemption_count is
  'Redemptions of this merchant, template and currency on that day.';
comment on column report.statement_line.redemption_amount is
  'Sum of their discounts in major units. 0: none.';
comment on column report.statement_line.reversal_count is
  'Reversals on that day, including those of earlier redemptions.';
comment on column report.statement_line.reversal_amount is
  'Sum of the reversed discounts in major units, 0 or negative.';
comment on column report.statement_line.net_amount is
  'redemption_amount plus reversal_amount, in major units.';

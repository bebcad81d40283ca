create or replace view report.daily_distributor as
select y.tenant, d.external_id as distributor, y.business_date, y.currency, y.redemption_count,
       rules.format_amount(y.redemption_minor, c.decimals, 'major') as redemption_amount,
       y.reversal_count,
       rules.format_amount(y.reversal_minor, c.decimals, 'major') as reversal_amount,
       rules.format_amount(
         y.redemption_minor + y.reversal_minor, c.decimals, 'major') as net_amount,
       coalesce(y.business_date < b.open_on, false) as is_closed
from (
  select l.tenant, l.tenant_id, l.distributor_id, l.business_date, l.currency,
         sum(l.redemption_count)::int as redemption_count,
         sum(l.redemption_minor)::bigint as redemption_minor,
         sum(l.reversal_count)::int as reversal_count,
         sum(l.reversal_minor)::bigint as reversal_minor
  from rules.line_by_batch l
  group by l.tenant, l.tenant_id, l.distributor_id, l.business_date, l.currency) y
left join core.currency c on c.currency = y.currency
left join core.ledger_book b on b.tenant_id = y.tenant_id and b.party_id = y.distributor_id
left join core.party d on d.tenant_id = y.tenant_id and d.party_id = y.distributor_id;
comment on view report.daily_distributor is
  '@primaryKey tenant,distributor,business_date,currency
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,distributor) references report.party (tenant,party)
Redemptions and reversals of each business day, open days included, by distributor and currency; '
'amounts in major units. Fast: everything, in proportion to days × batches. Reads the entries of '
'open days only.';
comment on column report.daily_distributor.tenant is 'External ID, ten_….';
comment on column report.daily_distributor.distributor is
  'External ID of the party that gets the statements, pty_….';
comment on column report.daily_distributor.business_date is
  'Local day in the distributor''s time zone (report.party), 23 to 25 hours long.';
comment on column report.daily_distributor.currency is
  'ISO 4217 code. It sets the decimals of the amounts in this row.';
comment on column report.daily_distributor.redemption_count is
  'Redemptions of this currency on that day.';
comment on column report.daily_distributor.redemption_amount is
  'Sum of their discounts in major units. 0: none.';
comment on column report.daily_distributor.reversal_count is
  'Reversals on that day, including those of earlier redemptions.';
comment on column report.daily_distributor.reversal_amount is
  'Sum of the reversed discounts in major units, 0 or negative.';
comment on column report.daily_distributor.net_amount is
  'redemption_amount plus reversal_amount, in major units.';
comment on column report.daily_distributor.is_closed is
  'True: the row never changes. False: the day is open.';

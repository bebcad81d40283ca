-- From the lines of closed days and the entries of open days, so no entry of a closed day is read.
create or replace view report.maker_balance as
select y.tenant, o.external_id as maker, y.currency, y.redemption_count,
       rules.format_amount(y.redemption_minor, c.decimals, 'major') as redemption_amount,
       y.reversal_count,
       rules.format_amount(y.reversal_minor, c.decimals, 'major') as reversal_amount,
       rules.format_amount(
         y.redemption_minor + y.reversal_minor, c.decimals, 'major') as balance
from (
  select l.tenant, l.tenant_id, b.maker_id, l.currency,
         sum(l.redemption_count)::bigint as redemption_count,
         sum(l.redemption_minor)::bigint as redemption_minor,
         sum(l.reversal_count)::bigint as reversal_count,
         sum(l.reversal_minor)::bigint as reversal_minor
  from rules.line_by_batch l
  left join core.batch b on b.tenant_id = l.tenant_id and b.batch_id = l.batch_id
  group by l.tenant, l.tenant_id, b.maker_id, l.currency) y
left join core.currency c on c.currency = y.currency
left join core.party o on o.tenant_id = y.tenant_id and o.party_id = y.maker_id;
comment on view report.maker_balance is '@primaryKey tenant,maker,currency
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,maker) references report.party (tenant,party)
The balance of each maker and currency now, open days included; amounts in major units.
Fast: everything, in proportion to days × batches. Reads the entries of open days only. For the
balance at the end of a day, sum report.daily.';
comment on column report.maker_balance.tenant is 'External ID, ten_….';
comment on column report.maker_balance.maker is
  'External ID of the party that submitted the batches, pty_….';
comment on column report.maker_balance.currency is
  'ISO 4217 code. It sets the decimals of the amounts in this row.';
comment on column report.maker_balance.redemption_count is 'Redemptions so far.';
comment on column report.maker_balance.redemption_amount is
  'Sum of their discounts in major units.';
comment on column report.maker_balance.reversal_count is 'Reversals so far.';
comment on column report.maker_balance.reversal_amount is
  'Sum of the reversed discounts in major units, 0 or negative.';
comment on column report.maker_balance.balance is
  'redemption_amount plus reversal_amount, in major units.';

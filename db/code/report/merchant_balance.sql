-- The balance after each ledger entry. The last row of a merchant and currency is the current
-- balance.
create or replace view report.merchant_balance as
select l.tenant, l.merchant, l.currency, l.recorded_at, l.entry, l.entry_type,
       l.discount_amount as amount,
       sum(l.discount_amount) over (
         partition by l.tenant, l.merchant, l.currency
         order by l.recorded_at, l.entry_key) as balance
from report.ledger l;
comment on view report.merchant_balance is '@primaryKey tenant,entry
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,entry) references report.ledger (tenant,entry)
@foreignKey (tenant,merchant) references report.merchant (tenant,merchant)
The running balance of each merchant and currency; amounts in major units. Fast: a merchant. The
sums up to the last closed day are quicker from report.statement_line.';
comment on column report.merchant_balance.tenant is 'External ID, ten_….';
comment on column report.merchant_balance.merchant is 'External ID, mch_….';
comment on column report.merchant_balance.currency is
  'ISO 4217 code. It sets the decimals of the amounts in this row.';
comment on column report.merchant_balance.recorded_at is
  'When the database recorded it. Decides the business day.';
comment on column report.merchant_balance.entry is 'External ID of the ledger entry, led_….';
comment on column report.merchant_balance.entry_type is 'REDEMPTION or REVERSAL.';
comment on column report.merchant_balance.amount is
  'Discount in major units; negative for a reversal.';
comment on column report.merchant_balance.balance is
  'Sum of the amounts of this merchant and currency up to this entry, in major units.';

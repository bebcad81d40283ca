-- The balance after each ledger entry. The last row of a distributor and currency is the current
-- balance.
create or replace view report.distributor_balance as
select t.external_id as tenant, o.external_id as distributor, l.currency,
       l.recorded_at::timestamptz,
       rules.format_id('led', l.entry_id) as entry, l.entry_type::text,
       rules.format_amount(l.amount_minor, c.decimals, 'major') as amount,
       rules.format_amount(
         (sum(l.amount_minor) over running)::bigint, c.decimals, 'major') as balance
from core.ledger_entry l
left join core.tenant t using (tenant_id)
left join core.currency c using (currency)
left join core.party o on o.tenant_id = l.tenant_id and o.party_id = l.distributor_id
window running as (
  partition by t.external_id, o.external_id, l.currency order by l.recorded_at, l.entry_id);
comment on view report.distributor_balance is '@primaryKey tenant,entry
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,entry) references report.ledger (tenant,entry)
@foreignKey (tenant,distributor) references report.party (tenant,party)
The running balance of each distributor and currency; amounts in major units. Reads the whole
ledger. The sums up to the last closed day are quicker from report.statement_line.';
comment on column report.distributor_balance.tenant is 'External ID, ten_….';
comment on column report.distributor_balance.distributor is
  'External ID of the party that gets the statements, pty_….';
comment on column report.distributor_balance.currency is
  'ISO 4217 code. It sets the decimals of the amounts in this row.';
comment on column report.distributor_balance.recorded_at is
  'When the database recorded it. Decides the business day.';
comment on column report.distributor_balance.entry is 'External ID of the ledger entry, led_….';
comment on column report.distributor_balance.entry_type is 'REDEMPTION or REVERSAL.';
comment on column report.distributor_balance.amount is
  'Discount in major units; negative for a reversal.';
comment on column report.distributor_balance.balance is
  'Sum of the amounts of this distributor and currency up to this entry, in major units.';

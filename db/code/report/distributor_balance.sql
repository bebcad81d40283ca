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
join core.tenant t using (tenant_id)
join core.currency c using (currency)
join core.party o on o.tenant_id = l.tenant_id and o.party_id = l.distributor_id
window running as (
  partition by t.external_id, o.external_id, l.currency order by l.recorded_at, l.entry_id);
comment on view report.distributor_balance is
  'The running balance of each distributor and currency; amounts in major units.';

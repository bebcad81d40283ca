create or replace view rules.open_day_and_later_days_are_not_closed as
select 'open day and later days are not closed' as invariant, b.tenant_id,
       core.name_party(b.tenant_id, b.party_id) || ' '
         || to_char(s.business_date, 'YYYY-MM-DD') as subject
from core.ledger_book b
join core.statement s on s.tenant_id = b.tenant_id and s.distributor_id = b.party_id
where s.business_date >= b.open_on;
comment on view rules.open_day_and_later_days_are_not_closed is
  'Statements for the open business day or a later one.';

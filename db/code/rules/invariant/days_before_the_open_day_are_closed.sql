create or replace view rules.days_before_the_open_day_are_closed as
select 'days before the open day are closed' as invariant, b.tenant_id,
       core.name_party(b.tenant_id, b.party_id) || ' '
         || to_char(p.business_date, 'YYYY-MM-DD') as subject
from core.ledger_book b
join rules.posting p on p.tenant_id = b.tenant_id and p.distributor_id = b.party_id
where p.business_date < b.open_on
  and not exists (
    select from core.statement s
    where s.tenant_id = p.tenant_id
      and s.distributor_id = p.distributor_id
      and s.business_date = p.business_date)
group by b.tenant_id, b.party_id, p.business_date;
comment on view rules.days_before_the_open_day_are_closed is
  'Business days with postings, before the open day, without a statement.';

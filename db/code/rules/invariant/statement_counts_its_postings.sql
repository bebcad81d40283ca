create or replace view rules.statement_counts_its_postings as
select 'statement counts its postings' as invariant, s.tenant_id,
       core.name_party(s.tenant_id, s.distributor_id) || ' '
         || to_char(s.business_date, 'YYYY-MM-DD') as subject
from core.statement s
where s.entry_count <> (
  select count(*)
  from rules.posting p
  where p.tenant_id = s.tenant_id
    and p.distributor_id = s.distributor_id
    and p.business_date = s.business_date);
comment on view rules.statement_counts_its_postings is
  'Statements whose entry_count is not the number of their postings.';

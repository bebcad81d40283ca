create or replace view rules.posting_numbers_are_1_to_n as
select 'posting numbers are 1 to n' as invariant, p.tenant_id,
       core.name_party(p.tenant_id, p.distributor_id) || ' '
         || to_char(p.business_date, 'YYYY-MM-DD') as subject
from rules.posting p
group by p.tenant_id, p.distributor_id, p.business_date
having min(p.number) <> 1 or max(p.number) <> count(*);
comment on view rules.posting_numbers_are_1_to_n is
  'Business days with a missing posting number.';

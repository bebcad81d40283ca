create or replace view rules.ready_statement_has_its_event as
select 'ready statement has its event' as invariant, s.tenant_id,
       core.name_party(s.tenant_id, s.distributor_id) || ' '
         || to_char(s.business_date, 'YYYY-MM-DD') as subject
from core.statement s
left join (
  select e.tenant_id, e.party_id, e.business_date, count(*) as events
  from core.event e
  where e.business_date is not null
  group by e.tenant_id, e.party_id, e.business_date) e
  on e.tenant_id = s.tenant_id
     and e.party_id = s.distributor_id
     and e.business_date = s.business_date
where coalesce(e.events, 0) <> (s.ready_at is not null)::int;
comment on view rules.ready_statement_has_its_event is
  'Statements that are ready without one event, or have an event without being ready.';

-- COMPLETED: one batch.generated. ALLOCATED: one allocation.completed as well. PENDING: none.
create or replace view rules.batch_has_its_events as
select 'batch has its events' as law, b.tenant_id, b.external_id as subject
from core.batch b
cross join (values ('batch.generated', 'COMPLETED'), ('allocation.completed', 'ALLOCATED'))
  k (event_type, status)
left join (
  select e.tenant_id, e.batch_id, e.event_type, count(*) as events
  from core.event e
  where e.batch_id is not null
  group by e.tenant_id, e.batch_id, e.event_type) e
  on e.tenant_id = b.tenant_id and e.batch_id = b.batch_id and e.event_type = k.event_type
where coalesce(e.events, 0) <> (b.status = k.status or b.status = 'ALLOCATED')::int;
comment on view rules.batch_has_its_events is
  'Batches that do not have exactly the events of their status.';

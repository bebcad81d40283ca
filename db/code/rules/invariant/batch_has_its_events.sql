create or replace view rules.batch_has_its_events as
select 'batch has its events' as invariant, b.tenant_id, b.external_id as subject
from core.batch b
cross join (values ('batch.generated', 'COMPLETED'), ('allocation.completed', 'ALLOCATED'))
  k (event_type, status)
left join core.event e
  on e.tenant_id = b.tenant_id and e.batch_id = b.batch_id and e.event_type = k.event_type
group by b.tenant_id, b.batch_id, k.event_type, k.status
having count(e.event_id) <> (b.status = k.status or b.status = 'ALLOCATED')::int;
comment on view rules.batch_has_its_events is
  'Batches that do not have exactly the events of their status. COMPLETED: one batch.generated. '
  'ALLOCATED: one allocation.completed as well. PENDING: none.';

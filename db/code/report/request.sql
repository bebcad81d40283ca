create or replace view report.request as
select t.external_id as tenant, p.external_id as caller, q.request_id::text,
       q.idempotency_key::text, q.operation, q.http_status::smallint, q.response, q.recorded_at
from core.request q
join core.tenant t using (tenant_id)
left join core.party p on p.tenant_id = q.tenant_id and p.party_id = q.caller_id;
comment on view report.request is 'Recorded answers of writes.';

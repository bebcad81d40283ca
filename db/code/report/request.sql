create or replace view report.request as
select t.external_id as tenant, p.external_id as caller, q.request_id::text,
       q.idempotency_key::text, q.first_request_id::text, q.operation, q.http_status::smallint,
       q.response::text, q.recorded_at
from core.request q
left join core.tenant t using (tenant_id)
left join core.party p on p.tenant_id = q.tenant_id and p.party_id = q.caller_id;
comment on view report.request is '@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,caller) references report.party (tenant,party)
Recorded answers of writes. Fast: a request_id; an idempotency_key; recorded_at after a recent
time.';
comment on column report.request.tenant is 'External ID, ten_….';
comment on column report.request.caller is
  'External ID of the calling party, pty_…. Null: Variant A, the tenant called.';
comment on column report.request.request_id is 'As the caller sent it; unique per caller.';
comment on column report.request.idempotency_key is
  'Header of that name; unique per caller. Null: not sent, or a retry that was found by it.';
comment on column report.request.first_request_id is
  'Of a retry that was found by its idempotency-key: the request_id of the first call.';
comment on column report.request.operation is 'As in the path, for example redeem.';
comment on column report.request.http_status is
  '200, or the status of a final refusal: 404, 409 or 422.';
comment on column report.request.response is 'The body that a retry gets, byte for byte.';
comment on column report.request.recorded_at is
  'When it was decided, also for a retry with another request_id. Deleted after '
  'REQUEST_RETENTION_DAYS.';

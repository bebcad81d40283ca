create or replace view report.statement as
select t.external_id as tenant, d.external_id as distributor, s.business_date, s.closed_at,
       s.ready_at, s.entry_count, s.detail_bytes, s.detail_sha256,
       s.summary_rows, s.summary_bytes, s.summary_sha256
from core.statement s
join core.tenant t using (tenant_id)
join core.party d on d.tenant_id = s.tenant_id and d.party_id = s.distributor_id;
comment on view report.statement is 'Closed business days and their files.';

create or replace view report.audit as
select a.audit_id, a.recorded_at, a.login, a.client, t.external_id as tenant,
       a.action, a.target, a.reason, a.details
from core.audit a
left join core.tenant t using (tenant_id);
comment on view report.audit is
  'Administrative actions (patches, provisioning, exports): who, when and why.';

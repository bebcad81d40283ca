create or replace view report.credential as
select t.external_id as tenant, c.access_key, p.external_id as party, c.created_at, c.revoked_at
from core.credential c
join core.tenant t using (tenant_id)
left join core.party p using (tenant_id, party_id);
comment on view report.credential is 'Credentials without their secrets.';

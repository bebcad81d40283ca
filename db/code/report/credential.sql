create or replace view report.credential as
select t.external_id as tenant, c.access_key, p.external_id as party, c.created_at, c.revoked_at,
       c.last_used_at
from core.credential c
join core.tenant t using (tenant_id)
left join core.party p using (tenant_id, party_id);
comment on view report.credential is '@primaryKey access_key
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,party) references report.party (tenant,party)
Credentials without their secrets.';
comment on column report.credential.tenant is 'External ID, ten_….';
comment on column report.credential.access_key is 'Unique across tenants, ak_….';
comment on column report.credential.party is
  'Variant B: external ID of the calling party, pty_…. Null: Variant A, the tenant calls.';
comment on column report.credential.created_at is
  'When apply first declared it, or a rotation made it.';
comment on column report.credential.revoked_at is
  'From then on its calls are refused. Null: it is in use.';
comment on column report.credential.last_used_at is
  'The beginning of the hour (UTC) of its last call, known about a minute later. Null: never '
  'used.';

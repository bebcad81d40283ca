create or replace view report.tenant as
select t.external_id as tenant, t.name, t.variant, t.amount_unit, t.created_at
from core.tenant t;
comment on view report.tenant is '@primaryKey tenant
Tenants.';
comment on column report.tenant.tenant is 'External ID, ten_….';
comment on column report.tenant.name is 'As provisioned; need not be unique.';
comment on column report.tenant.variant is
  'Form of the interface. A: a credential acts for the tenant. B: for one party.';
comment on column report.tenant.amount_unit is
  'Unit of amounts in requests and answers, major or minor. Reports show major units.';
comment on column report.tenant.created_at is 'When apply first declared it.';

create or replace view report.tenant as
select t.external_id as tenant, t.name, t.variant, t.amount_unit, t.created_at,
       t.is_sandbox
from core.tenant t
where t.home = core.read_cell()
  and not exists (select from core.cell c where c.attempt = t.fence);
comment on view report.tenant is '@primaryKey tenant
Tenants that live in this cell, and have arrived. After a split, rows of others stay in other '
'views until they are cleared; leave them out with tenant in (select tenant from report.tenant).';
comment on column report.tenant.tenant is 'External ID, ten_….';
comment on column report.tenant.name is 'As provisioned; need not be unique.';
comment on column report.tenant.variant is
  'Form of the interface. A: a credential acts for the tenant. B: for one party.';
comment on column report.tenant.amount_unit is
  'Unit of amounts in requests and answers, major or minor. Reports show major units.';
comment on column report.tenant.created_at is 'When apply first declared it.';
comment on column report.tenant.is_sandbox is
  'True: for rehearsals, so its coupons and money are not real. Leave it out of other reports with '
  'tenant in (select tenant from report.tenant where not is_sandbox).';

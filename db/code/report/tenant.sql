create or replace view report.tenant as
select t.external_id as tenant, t.name, t.variant, t.amount_unit, t.created_at
from core.tenant t;
comment on view report.tenant is 'Tenants.';

-- Whether this cell serves a tenant now: it is at home here, and on its way to no other cell. Work
-- for other tenants is left out, so that of two copies of a cell one does it.
create or replace function rules.is_served(p_tenant_id int) returns boolean
language sql stable
return exists (
  select
  from core.tenant t
  join core.cell c on c.number = t.home
  where t.tenant_id = p_tenant_id and c.is_this and c.number = core.read_server_cell()
    and t.fence is null);

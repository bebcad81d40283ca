-- Whether this cell is the home of a tenant. A router asks all cells, if the one that it knows does
-- not serve the tenant. A standby is not, and a cell that has taken a tenant is not before it opens
-- it: the split may still be given up.
create or replace function gate.has_tenant(p_tenant_id int) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp
return exists (
  select
  from core.tenant t
  where t.tenant_id = p_tenant_id
    and t.home = core.read_cell()
    and not exists (select from core.cell c where c.attempt = t.fence)
    and not pg_is_in_recovery());

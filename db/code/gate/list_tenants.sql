-- The numbers of the tenants that this cell serves. A router compares those of all cells.
create or replace function gate.list_tenants() returns int[]
language sql stable security definer set search_path = pg_catalog, pg_temp
return array(
  select t.tenant_id
  from core.tenant t
  where t.home = core.read_cell()
    and not exists (select from core.cell c where c.attempt = t.fence)
  order by 1);

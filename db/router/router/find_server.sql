-- The server of the cell in which a tenant lives, as far as this router knows. Volatile, so that it
-- sees what this statement has noted.
create or replace function router.find_server(p_tenant_id int) returns text
language sql volatile
return 'cell_' || coalesce(
  (select t.cell from router.tenant t where t.tenant_id = p_tenant_id),
  (p_tenant_id - 1) / 1000000 + 1);

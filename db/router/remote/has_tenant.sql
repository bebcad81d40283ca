create or replace function remote.has_tenant(p_cell int, p_tenant_id int) returns boolean
language plproxy volatile set search_path = pg_catalog, pg_temp as $$
  cluster router.name_server(p_cell);
  run on 0;
  select gate.has_tenant(p_tenant_id);
$$;

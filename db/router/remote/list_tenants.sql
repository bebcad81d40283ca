create or replace function remote.list_tenants(p_cell int) returns int[]
language plproxy volatile set search_path = pg_catalog, pg_temp as $$
  cluster router.name_server(p_cell);
  run on 0;
  select gate.list_tenants();
$$;

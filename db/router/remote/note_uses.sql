create or replace function remote.note_uses(
  p_cell int, p_tenant_ids int[], p_credential_ids int[])
returns int
language plproxy volatile set search_path = pg_catalog, pg_temp as $$
  cluster router.name_server(p_cell);
  run on 0;
  select gate.note_uses(p_tenant_ids, p_credential_ids);
$$;

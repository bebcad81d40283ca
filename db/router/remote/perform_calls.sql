create or replace function remote.perform_calls(
  p_tenant_id int, p_calls jsonb, p_random bytea, p_may_wait boolean)
returns core.answer[]
language plproxy volatile set search_path = pg_catalog, pg_temp as $$
  cluster router.find_server(p_tenant_id);
  run on 0;
  select gate.perform_calls(p_tenant_id, p_calls, p_random, p_may_wait);
$$;

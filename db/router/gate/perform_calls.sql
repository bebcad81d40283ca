-- gate.perform_calls of the cell in which the tenant lives, as far as this router knows. It is in
-- PL/Proxy itself, so that a lone call costs little: a function around it took a quarter of the
-- router's time. So its errors are those of PL/Proxy, and serve asks gate.find_home if the cell
-- does not serve the tenant.
create or replace function gate.perform_calls(
  p_tenant_id int, p_calls jsonb, p_random bytea, p_may_wait boolean)
returns core.answer[]
language plproxy volatile security definer set search_path = pg_catalog, pg_temp as $$
  cluster router.name_server(router.find_cell(p_tenant_id));
  run on 0;
  select gate.perform_calls(p_tenant_id, p_calls, p_random, p_may_wait);
$$;

-- rules.register_keys of a cell.
create or replace function gate.register_keys(
  p_cell int, p_keys jsonb, out version text, out problem text)
returns setof record
language plproxy volatile security definer set search_path = pg_catalog, pg_temp as $$
  cluster router.name_server(p_cell);
  run on 0;
  select k.version, k.problem from rules.register_keys(p_keys) k;
$$;

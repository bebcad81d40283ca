-- gate.mark_commit of a cell.
create or replace function gate.mark_commit(p_cell int) returns float8
language plproxy volatile security definer set search_path = pg_catalog, pg_temp as $$
  cluster router.name_server(p_cell);
  run on 0;
  select gate.mark_commit(p_cell);
$$;

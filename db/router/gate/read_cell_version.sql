-- rules.read_version of a cell, and whether the cell takes no writes.
create or replace function gate.read_cell_version(
  p_cell int,
  out migration text, out code text, out cell int, out server_cell int, out is_read_only boolean)
returns setof record
language plproxy volatile security definer set search_path = pg_catalog, pg_temp as $$
  cluster router.name_server(p_cell);
  run on 0;
  select v.migration, v.code, v.cell, v.server_cell,
         current_setting('transaction_read_only')::boolean as is_read_only
  from rules.read_version() v;
$$;

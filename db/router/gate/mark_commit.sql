-- gate.mark_commit of a cell.
create or replace function gate.mark_commit(p_cell int) returns float8
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  return remote.mark_commit(p_cell);
end
$$;

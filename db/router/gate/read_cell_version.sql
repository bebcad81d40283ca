-- rules.read_version of a cell, and whether the cell takes no writes.
create or replace function gate.read_cell_version(
  p_cell int,
  out migration text, out code text, out cell int, out server_cell int, out is_read_only boolean)
returns setof record
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_message  text;
begin
  return query select v.* from remote.read_version(p_cell) v;
exception when internal_error then
  get stacked diagnostics v_message = message_text;
  perform router.raise_failure('XX000', v_message);
end
$$;

-- rules.register_keys of a cell.
create or replace function gate.register_keys(
  p_cell int, p_keys jsonb, out version text, out problem text)
returns setof record
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_message  text;
begin
  return query select k.version, k.problem from remote.register_keys(p_cell, p_keys) k;
exception when internal_error then
  get stacked diagnostics v_message = message_text;
  perform router.raise_failure('XX000', v_message);
end
$$;

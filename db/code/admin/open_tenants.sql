create or replace function admin.open_tenants(p_attempt int) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_opened  int;
begin
  update core.tenant t
  set fence = null, drained = null
  where t.fence = p_attempt and t.home = core.read_cell();
  get diagnostics v_opened = row_count;
  return v_opened;
end
$$;
comment on function admin.open_tenants(int) is
  'Opens the tenants of an attempt that live here: in their new home, or, if the attempt is given '
  'up, in the old one. Returns how many.';

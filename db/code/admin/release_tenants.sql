create or replace function admin.release_tenants(p_attempt int, p_tenants text[], p_to int)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_done  int;
begin
  if exists (
    select from core.tenant t where t.fence = p_attempt and t.external_id <> all (p_tenants))
  then
    raise exception 'attempt % moves other tenants too', p_attempt using errcode = 'CP409';
  end if;
  update core.tenant t
  set home = p_to, left_at = 'infinity'
  where t.external_id = any (p_tenants) and t.fence = p_attempt and t.home = core.read_cell();
  get diagnostics v_done = row_count;
  if v_done <> cardinality(p_tenants) then
    raise exception 'attempt % was given up', p_attempt using errcode = 'CP409';
  end if;
end
$$;
comment on function admin.release_tenants(int, text[], int) is
  'In the cell that tenants leave: from the commit on, they live in the other cell. There is no '
  'way back.';

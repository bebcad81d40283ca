create or replace function admin.close_tenants(p_tenants text[], p_to int, p_reason text)
returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason   text := rules.check_reason(p_reason);
  v_attempt  int := nextval('core.fence_seq');
  v_known    int;
begin
  select count(*) into v_known
  from core.tenant t
  where t.external_id = any (p_tenants) and t.home = core.read_cell() and t.fence is null;
  if v_known <> cardinality(p_tenants) then
    raise exception 'not every tenant lives in this cell and is open' using errcode = 'CP409';
  end if;
  perform rules.write_audit(
    t.tenant_id, 'close_tenants', t.external_id, v_reason,
    jsonb_build_object('attempt', v_attempt, 'to_cell', p_to))
  from core.tenant t
  where t.external_id = any (p_tenants);
  update core.tenant t
  set fence = v_attempt, drained = null
  where t.external_id = any (p_tenants) and t.home = core.read_cell() and t.fence is null;
  return v_attempt;
end
$$;
comment on function admin.close_tenants(text[], int, text) is
  'Closes tenants that move to another cell: from the commit on, their calls get 503 and their '
  'work rests. Returns the number of the attempt. See coupon cells split.';

create or replace function admin.take_tenants(p_attempt int, p_tenants text[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_cell  int := core.read_server_cell();
begin
  if exists (select from core.tenant t where t.home = v_cell and t.external_id <> all (p_tenants))
  then
    raise exception 'cell % has tenants already', v_cell using errcode = 'CP409';
  elsif exists (
    select from core.tenant t where t.fence = p_attempt and t.external_id <> all (p_tenants))
  then
    raise exception 'attempt % moves other tenants too', p_attempt using errcode = 'CP409';
  elsif cardinality(p_tenants) <> (
    select count(*)
    from core.tenant t
    where t.external_id = any (p_tenants) and t.fence = p_attempt and t.drained = p_attempt)
  then
    raise exception 'this copy lacks the end of attempt %', p_attempt
      using errcode = 'CP409', hint = 'Build the standby anew.';
  end if;
  if core.read_cell() is null then
    update core.cell c set number = v_cell, attempt = p_attempt;
    perform setval('core.tenant_tenant_id_seq', (v_cell - 1) * 1000000 + 1, false);
  end if;
  update core.tenant t
  set home = v_cell, left_at = null
  where t.external_id = any (p_tenants) and t.home <> v_cell;
  update core.tenant t set left_at = 'infinity' where t.home <> v_cell and t.left_at is null;
end
$$;
comment on function admin.take_tenants(int, text[]) is
  'In the promoted copy of a cell: makes it the cell of its server''s coupon.cell, and the home of '
  'tenants that an attempt moves. They stay closed. Refuses if the copy lacks one of their calls.';

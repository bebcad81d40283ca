-- gate.note_uses of each cell that has some of the tenants. If one of them cannot be reached, this
-- raises an error after the others have noted theirs: to note them again changes nothing.
create or replace function gate.note_uses(p_tenant_ids int[], p_credential_ids int[]) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_left    int;
  v_share   record;
  v_missed  text;
begin
  for v_share in
    select router.find_cell(u.tenant_id) as cell,
           array_agg(u.tenant_id) as tenant_ids, array_agg(u.credential_id) as credential_ids
    from unnest(p_tenant_ids, p_credential_ids) u (tenant_id, credential_id)
    group by 1
  loop
    begin
      v_left := least(
        v_left, remote.note_uses(v_share.cell, v_share.tenant_ids, v_share.credential_ids));
    exception when internal_error or cannot_connect_now or admin_shutdown then
      get stacked diagnostics v_missed = message_text;
    end;
  end loop;
  if v_missed is not null then
    raise exception '%', v_missed using errcode = 'connection_failure';
  end if;
  return v_left;
end
$$;

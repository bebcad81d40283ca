-- Signs out. A session that has ended already is no error, and neither is one in a tenant that
-- another cell serves, or that is on its way there: its audit is not here.
create or replace function console.end_session(p_token_hash bytea) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_session  core.console_session;
begin
  delete from core.console_session s where s.token_hash = p_token_hash returning s.* into v_session;
  if found and (v_session.tenant_id is null or rules.is_served(v_session.tenant_id)) then
    perform rules.write_audit(v_session.tenant_id, 'sign_out', v_session.name, null,
      jsonb_build_object('name', v_session.name));
  end if;
end
$$;

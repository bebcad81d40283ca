-- Signs out. A session that has ended already is no error.
create or replace function console.end_session(p_token_hash bytea) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_name  text;
begin
  delete from core.console_session s where s.token_hash = p_token_hash returning s.name into v_name;
  if found then
    perform rules.write_audit(null, 'sign_out', v_name, null, jsonb_build_object('name', v_name));
  end if;
end
$$;

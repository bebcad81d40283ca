-- Signs a member of staff in for p_hours. Sessions that have expired go at the same time.
create or replace function console.open_session(p_token_hash bytea, p_name text, p_hours int)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now  timestamptz := clock_timestamp();
begin
  delete from core.console_session s where s.expires_at <= v_now;
  insert into core.console_session (token_hash, name, signed_in_at, expires_at)
  values (p_token_hash, p_name, v_now, v_now + make_interval(hours => p_hours));
  perform rules.write_audit(null, 'sign_in', p_name, null, jsonb_build_object('hours', p_hours));
end
$$;

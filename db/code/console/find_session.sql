-- Who is signed in with this cookie; null if nobody is.
create or replace function console.find_session(p_token_hash bytea) returns text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return (
    select s.name
    from core.console_session s
    where s.token_hash = p_token_hash and s.expires_at > clock_timestamp());
end
$$;

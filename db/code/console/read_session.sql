-- Who is signed in with this cookie; a null name if nobody is. is_company: it came by a link to the
-- portal. When its access key is revoked or its tenant moves to another cell, it ends.
create or replace function console.read_session(
  p_token_hash bytea, out name text, out is_company boolean)
returns record
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  select s.name, s.credential_id is not null into name, is_company
  from core.console_session s
  left join core.credential c on c.tenant_id = s.tenant_id and c.credential_id = s.credential_id
  left join core.tenant t on t.tenant_id = s.tenant_id
  where s.token_hash = p_token_hash
    and s.expires_at > clock_timestamp()
    and c.revoked_at is null
    and (s.tenant_id is null or t.home = core.read_cell());
end
$$;

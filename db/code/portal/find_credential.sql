-- The access key that asked for the link of this session. No row: nobody is signed in, the key
-- is revoked, or another cell serves its tenant.
create or replace function portal.find_credential()
returns table (tenant_id int, party_id int)
language sql stable security definer rows 1 set search_path = pg_catalog, pg_temp
begin atomic
  select c.tenant_id, c.party_id
  from core.console_session s
  join core.credential c on c.tenant_id = s.tenant_id and c.credential_id = s.credential_id
  join core.tenant t on t.tenant_id = s.tenant_id and t.home = core.read_cell()
  where s.token_hash = decode(current_setting('coupon.session', true), 'hex')
    and s.expires_at > statement_timestamp()
    and c.revoked_at is null;
end;

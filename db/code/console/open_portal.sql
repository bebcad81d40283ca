-- Signs a company in for an hour with an unused link, and returns its name; null if the link is
-- spent, has expired, or belongs to a revoked access key or to a tenant of another cell.
create or replace function console.open_portal(p_token_hash bytea, p_link text) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now    timestamptz := clock_timestamp();
  v_link   core.portal_link;
  v_owner  record;
begin
  delete from core.portal_link l
  where l.link_id = rules.parse_id('lnk', p_link)
  returning l.* into v_link;
  select coalesce(p.external_id, t.external_id) as name, c.access_key into v_owner
  from core.credential c
  join core.tenant t on t.tenant_id = c.tenant_id and t.home = core.read_cell()
  left join core.party p on p.tenant_id = c.tenant_id and p.party_id = c.party_id
  where c.tenant_id = v_link.tenant_id
    and c.credential_id = v_link.credential_id
    and c.revoked_at is null
    and v_link.expires_at > v_now;
  if found then
    delete from core.console_session s where s.expires_at <= v_now;
    insert into core.console_session
      (token_hash, name, signed_in_at, expires_at, tenant_id, credential_id)
    values (p_token_hash, v_owner.name, v_now, v_now + interval '1 hour', v_link.tenant_id,
            v_link.credential_id);
    perform rules.write_audit(v_link.tenant_id, 'sign_in', v_owner.name, null,
      jsonb_build_object('access_key', v_owner.access_key));
  end if;
  return v_owner.name;
end
$$;

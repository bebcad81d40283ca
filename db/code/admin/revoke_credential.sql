create or replace function admin.revoke_credential(p_access_key text, p_reason text)
returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason      text := rules.check_reason(p_reason);
  v_credential  core.credential := rules.hold_credential_for_patch(p_access_key);
begin
  perform rules.write_audit(v_credential.tenant_id, 'revoke_credential', p_access_key, v_reason,
    jsonb_build_object('status', jsonb_build_object(
      'old', case when v_credential.revoked_at is null then 'in use' else 'revoked' end,
      'new', 'revoked')));
  update core.credential c
  set revoked_at = coalesce(c.revoked_at, clock_timestamp())
  where c.tenant_id = v_credential.tenant_id and c.access_key = p_access_key
  returning * into v_credential;
  return v_credential.revoked_at;
end
$$;
comment on function admin.revoke_credential(text, text) is
  'Revokes a credential permanently. The next call with it is refused, because every call checks '
  'it. Returns when it was first revoked.';

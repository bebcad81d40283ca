-- p_sealed_secret, p_secret_hash: of the new credential's secret, which the caller made.
create or replace function admin.rotate_credential(
  p_access_key text, p_new_access_key text, p_sealed_secret bytea, p_secret_hash bytea,
  p_reason text)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason      text := rules.check_reason(p_reason);
  v_credential  core.credential := rules.hold_credential_for_patch(p_access_key);
begin
  if v_credential.revoked_at is not null then
    raise exception 'credential % is revoked: make a new one with apply', p_access_key
      using errcode = 'CP409';
  end if;
  insert into core.credential (tenant_id, access_key, party_id, sealed_secret, secret_hash)
  values (v_credential.tenant_id, p_new_access_key, v_credential.party_id,
          p_sealed_secret, p_secret_hash);
  perform rules.write_audit(v_credential.tenant_id, 'rotate_credential', p_access_key, v_reason,
    jsonb_build_object('credential', jsonb_build_object(
      'old', p_access_key, 'new', p_new_access_key)));
end
$$;
comment on function admin.rotate_credential(text, text, bytea, bytea, text) is
  'Makes a credential for the caller of another one, which stays in use until revoke_credential. '
  'coupon credentials calls it, because the database never sees a secret.';

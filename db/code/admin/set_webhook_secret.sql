create or replace function admin.set_webhook_secret(
  p_tenant text, p_party text, p_sealed_secret bytea, p_secret_hash bytea, p_reason text)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason   text := rules.check_reason(p_reason);
  v_webhook  core.webhook := rules.hold_webhook_for_patch(p_tenant, p_party);
begin
  update core.webhook w
  set sealed_secret = p_sealed_secret, secret_hash = p_secret_hash
  where w.tenant_id = v_webhook.tenant_id and w.party_id = v_webhook.party_id;
  perform rules.write_audit(v_webhook.tenant_id, 'set_webhook_secret', p_party, v_reason,
    '{"webhook_secret":"replaced"}');
end
$$;
comment on function admin.set_webhook_secret(text, text, bytea, bytea, text) is
  'Replaces the secret of a webhook with one that npm run webhooks -- rotate has sealed. For '
  'another 24 hours the old secret signs too (core.replaced_secret).';

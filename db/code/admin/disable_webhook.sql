create or replace function admin.disable_webhook(p_tenant text, p_party text, p_reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set timezone = 'UTC' as $$
declare
  v_reason   text := rules.check_reason(p_reason);
  v_webhook  core.webhook := rules.hold_webhook_for_patch(p_tenant, p_party);
begin
  perform rules.disable_webhook(v_webhook.tenant_id, v_webhook.party_id, 'disabled: ' || v_reason);
  perform rules.write_audit(v_webhook.tenant_id, 'disable_webhook', p_party, v_reason,
    jsonb_build_object('disabled_at', jsonb_build_object('old', v_webhook.disabled_at, 'new', (
      select w.disabled_at
      from core.webhook w
      where w.tenant_id = v_webhook.tenant_id and w.party_id = v_webhook.party_id))));
end
$$;
comment on function admin.disable_webhook(text, text, text) is
  'Stops deliveries to a party and parks those that are waiting.';

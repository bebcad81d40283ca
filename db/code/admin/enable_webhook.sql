create or replace function admin.enable_webhook(p_tenant text, p_party text, p_reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set timezone = 'UTC' as $$
declare
  v_reason   text := rules.check_reason(p_reason);
  v_webhook  core.webhook := rules.hold_webhook_for_patch(p_tenant, p_party);
begin
  update core.webhook w
  set disabled_at = null, paused_until = null, holder = null, worker = null, lease_until = null
  where w.tenant_id = v_webhook.tenant_id and w.party_id = v_webhook.party_id;
  perform rules.write_audit(v_webhook.tenant_id, 'enable_webhook', p_party, v_reason,
    jsonb_build_object(
      'disabled_at', jsonb_build_object('old', v_webhook.disabled_at, 'new', null),
      'paused_until', jsonb_build_object('old', v_webhook.paused_until, 'new', null)));
end
$$;
comment on function admin.enable_webhook(text, text, text) is
  'Resumes deliveries to a party. New events are sent at once; admin.replay_parked sends the '
  'parked ones. A 410 or a Retry-After to an attempt that began before is only logged.';

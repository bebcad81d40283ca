create or replace function admin.test_webhook(
  p_tenant text, p_party text, p_event_type text default 'coupon.redeemed')
returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_webhook  core.webhook := rules.hold_webhook_for_patch(p_tenant, p_party);
  v_event    text;
begin
  if v_webhook.disabled_at is not null then
    raise exception 'the webhook of % is disabled: enable it first', p_party
      using errcode = 'CP409';
  end if;
  if not rules.is_type_taken(v_webhook.event_types, p_event_type) then
    raise exception 'the webhook of % takes only %', p_party,
      array_to_string(v_webhook.event_types, ', ') using errcode = 'CP409';
  end if;
  v_event := rules.format_id('evt', rules.create_test_delivery(
    v_webhook.tenant_id, v_webhook.party_id, p_event_type));
  perform rules.write_audit(v_webhook.tenant_id, 'test_webhook', p_party, null,
    jsonb_build_object('event', v_event, 'event_type', p_event_type));
  return v_event;
end
$$;
comment on function admin.test_webhook(text, text, text) is
  'Sends a party a test event, which is in no feed, ledger or statement. Returns its ID.';

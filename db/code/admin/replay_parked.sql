create or replace function admin.replay_parked(p_tenant text, p_party text, p_reason text)
returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason   text := rules.check_reason(p_reason);
  v_webhook  core.webhook := rules.hold_webhook_for_patch(p_tenant, p_party);
  v_events   uuid[];
begin
  v_events := array(
    select d.event_id
    from core.delivery d
    where d.tenant_id = v_webhook.tenant_id
      and d.party_id = v_webhook.party_id
      and d.parked_at is not null);
  perform rules.replay_deliveries(v_webhook.tenant_id, v_webhook.party_id, v_events);
  perform rules.write_audit(v_webhook.tenant_id, 'replay_parked', p_party, v_reason,
    jsonb_build_object('events', cardinality(v_events)));
  return cardinality(v_events);
end
$$;
comment on function admin.replay_parked(text, text, text) is
  'Sends all parked deliveries of a party again, also those of types of events that its webhook no '
  'longer takes. Returns how many.';

create or replace function admin.replay_range(
  p_tenant text, p_party text, p_from timestamptz, p_to timestamptz, p_reason text)
returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set timezone = 'UTC' as $$
declare
  v_reason   text := rules.check_reason(p_reason);
  v_webhook  core.webhook := rules.hold_webhook_for_patch(p_tenant, p_party);
  v_events   uuid[];
begin
  v_events := array(
    select e.event_id
    from rules.sequenced_event e
    where e.tenant_id = v_webhook.tenant_id
      and e.party_id = v_webhook.party_id
      and e.recorded_at >= p_from
      and e.recorded_at < p_to
      and rules.is_type_taken(v_webhook.event_types, e.event_type));
  perform rules.replay_deliveries(v_webhook.tenant_id, v_webhook.party_id, v_events);
  perform rules.write_audit(v_webhook.tenant_id, 'replay_range', p_party, v_reason,
    jsonb_build_object('from', p_from, 'to', p_to, 'events', cardinality(v_events)));
  return cardinality(v_events);
end
$$;
comment on function admin.replay_range(text, text, timestamptz, timestamptz, text) is
  'Sends a party its events recorded from p_from (inclusive) to p_to (exclusive) again, with the '
  'same webhook-ids. Returns how many. Skips types of events that its webhook does not take, and '
  'events that the sequencer has not processed yet: it creates their deliveries itself, and must '
  'not wait for this transaction.';

-- Sends what happened from p_from (with) to p_to (without) to a party again, under the same webhook-ids. Gives how
-- many events.
create or replace function admin.replay_range(
  p_tenant text, p_party text, p_from timestamptz, p_to timestamptz, p_reason text)
returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason   text := rules.check_reason(p_reason);
  v_webhook  core.webhook := rules.hold_webhook_for_patch(p_tenant, p_party);
  v_events   uuid[];
begin
  v_events := array(
    select e.event_id
    from core.event e
    where e.tenant_id = v_webhook.tenant_id
      and e.party_id = v_webhook.party_id
      and e.recorded_at >= p_from
      and e.recorded_at < p_to
      -- the others are not addressed yet: the sequencer does that, and must not wait for who has done it before
      and e.event_seq <= (select s.high_seq from core.sequencer s)
      and not exists (select from core.event_gap g where g.event_seq = e.event_seq));
  perform rules.replay_deliveries(v_webhook.tenant_id, v_webhook.party_id, v_events);
  perform rules.write_audit(v_webhook.tenant_id, 'replay_range', p_party, v_reason,
    jsonb_build_object('from', p_from, 'to', p_to, 'events', cardinality(v_events)));
  return cardinality(v_events);
end
$$;
comment on function admin.replay_range(text, text, timestamptz, timestamptz, text) is 'Sends a range of events again.';

-- POST /v1/webhook/replay sends a subscriber one event again, or all events recorded in a period,
-- with the same webhook-ids. It skips events that the sequencer has not processed yet: the
-- sequencer creates their deliveries itself, and must not wait for this transaction.
create or replace function api.replay_events(p_call core.call) returns core.answer
language plpgsql volatile as $$
declare
  c_limit    constant int := 10000;
  v_parties  int[] := rules.find_webhooks(p_call);
  v_types    text[];
  v_event    rules.sequenced_event;
  v_events   uuid[];
begin
  -- lock rows
  if cardinality(v_parties) <> 1 then
    return rules.refuse_webhook(p_call, v_parties);
  end if;
  if not rules.hold_webhook(p_call, v_parties[1]) then
    return rules.hand_back();
  end if;

  -- decide
  v_types := rules.list_event_types(p_call.tenant_id, v_parties[1]);
  if p_call.args ? 'event_id' then
    select e.* into v_event
    from rules.sequenced_event e
    where e.tenant_id = p_call.tenant_id
      and e.party_id = v_parties[1]
      and e.event_id = rules.parse_id('evt', p_call.args ->> 'event_id');
    if not found then
      return rules.refuse_not_found(p_call, 'event');
    elsif not rules.is_type_taken(v_types, v_event.event_type) then
      return rules.refuse_event_type(p_call, 'event_id', v_types);
    end if;
    v_events := array[v_event.event_id];
  else
    v_events := rules.find_recorded_events(
      p_call, v_parties[1], (p_call.args ->> 'from')::timestamptz,
      (p_call.args ->> 'to')::timestamptz, c_limit, v_types);
    if v_events is null then
      return rules.refuse_field(p_call, 'to',
        format('must be earlier: at most %s events are replayed at once', c_limit));
    end if;
  end if;
  if rules.is_webhook_disabled(p_call.tenant_id, v_parties[1]) then
    return rules.refuse(p_call, 'WEBHOOK_DISABLED');
  end if;

  -- write
  perform rules.replay_deliveries(p_call.tenant_id, v_parties[1], v_events);

  -- answer
  return rules.succeed(format('{"ok":true,"replayed":%s}', cardinality(v_events)));
end
$$;

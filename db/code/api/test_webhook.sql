-- POST /v1/webhook/test sends a subscriber a test event, which is in no feed, ledger or statement.
create or replace function api.test_webhook(p_call core.call) returns core.answer
language plpgsql volatile as $$
declare
  v_parties   int[] := rules.find_webhooks(p_call);
  v_types     text[];
  v_event_id  uuid;
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
  if not rules.is_type_taken(v_types, p_call.args ->> 'event_type') then
    return rules.refuse_event_type(p_call, 'event_type', v_types);
  end if;
  if rules.is_webhook_disabled(p_call.tenant_id, v_parties[1]) then
    return rules.refuse(p_call, 'WEBHOOK_DISABLED');
  end if;

  -- write
  v_event_id := rules.create_test_delivery(
    p_call.tenant_id, v_parties[1], p_call.args ->> 'event_type');

  -- answer
  return rules.succeed(format('{"ok":true,"event_id":"%s","event_type":"%s"}',
    rules.format_id('evt', v_event_id), p_call.args ->> 'event_type'));
end
$$;

-- GET /v1/webhook shows a subscriber the state of its deliveries.
create or replace function api.get_webhook(p_call core.call) returns core.answer
language plpgsql stable as $$
declare
  v_parties  int[] := rules.find_webhooks(p_call);
begin
  if cardinality(v_parties) <> 1 then
    return rules.refuse_webhook(p_call, v_parties);
  end if;
  return rules.succeed(format('{"ok":true,"webhook":%s}',
    rules.render_webhook(p_call.tenant_id, v_parties[1])));
end
$$;

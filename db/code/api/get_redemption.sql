-- GET /v1/redemptions/{redemption} shows a redemption to callers that may act for its merchant.
create or replace function api.get_redemption(p_call core.call) returns core.answer
language plpgsql stable as $$
declare
  v_id  uuid := rules.parse_id('red', p_call.args ->> 'redemption');
begin
  if not rules.is_redemption_visible(p_call, v_id) then
    return rules.refuse_not_found(p_call, 'redemption');
  end if;
  return rules.succeed(format('{"ok":true,"redemption":%s}',
    rules.render_redemption(p_call, v_id, clock_timestamp())));
end
$$;

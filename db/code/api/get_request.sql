-- GET /v1/requests/{request_id} returns the recorded answer of a write to a caller that lost it.
create or replace function api.get_request(p_call core.call) returns core.answer
language plpgsql stable as $$
begin
  return coalesce(
  (select rules.succeed(format(
       '{"ok":true,"request":{"request_id":%s,"operation":"%s","http_status":%s,'
       '"response":%s,"recorded_at":"%s"}}',
       to_json(q.request_id), q.operation, q.http_status,
       rules.render_body(rules.restore_answer(q)),
       rules.format_time(q.recorded_at)))
   from core.request q
   where q.tenant_id = p_call.tenant_id
     and q.caller_id = p_call.caller_id
     and q.request_id = p_call.args ->> 'request_id'),
  rules.refuse_not_found(p_call, 'request'));
end
$$;

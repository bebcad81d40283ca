-- The answer to a replay, from core.request. Reads code and resource from the response: only a
-- replay needs them, and storing them would cost every redemption.
create or replace function rules.restore_answer(p_http_status int, p_response text)
returns core.answer
language plpgsql immutable as $$
begin
  if p_http_status = 200 then
    return rules.succeed(p_response);
  end if;
  return (
    p_http_status, p_response::json ->> 'code', p_response::json #>> '{details,resource}',
    p_response)::core.answer;
end
$$;

-- For each write of a group. No answer: the request is new, and nobody else can work on it until this transaction
-- ends. Else the answer: the first one, when this is an equal retry; a refusal; or (0, null) when an equal request
-- is being worked on, in another transaction or earlier in this group, and this call may not wait.
create or replace function rules.claim_requests(p_calls core.call[]) returns core.outcome[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_call      core.call;
  v_name      text;
  v_key       text;
  v_names     text[] := '{}';
  v_claimed   core.call[];
  v_outcomes  core.outcome[];
begin
  foreach v_call in array p_calls loop
    v_name := v_call.caller_id || ' request ' || v_call.request_id;
    v_key := v_call.caller_id || ' key ' || v_call.idempotency_key;
    if v_names && array[v_name, v_key] then
      v_outcomes := v_outcomes || (v_call.ordinal, (0, null)::core.answer, false)::core.outcome;
    elsif rules.claim_request(v_call) then
      v_names := v_names || v_name || v_key;
      v_claimed := v_claimed || v_call;
    else
      v_outcomes := v_outcomes || (v_call.ordinal, case
        when v_call.may_wait then rules.refuse(v_call, 'REQUEST_IN_PROGRESS')
        else (0, null)::core.answer
      end, false)::core.outcome;
    end if;
  end loop;

  -- now that the names are ours: whether they were used before
  return v_outcomes || array(
    select (f.ordinal,
            case
              when not f.is_used then null
              when f.is_replay then (f.http_status, f.response)::core.answer
              else rules.refuse(f.call, 'IDEMPOTENCY_KEY_REUSED')
            end,
            f.is_used and f.is_replay)::core.outcome
    from (
      select c.ordinal, c as call,
             s.request_id is not null or k.request_id is not null as is_used,
             coalesce(s.http_status, k.http_status)::int as http_status,
             coalesce(s.response, k.response) as response,
             (s.request_id is null or (s.operation, s.body_hash) = (c.operation, c.body_hash))
             and (k.request_id is null or (k.operation, k.body_hash) = (c.operation, c.body_hash)) as is_replay
      from unnest(v_claimed) c
      left join core.request s
        on s.tenant_id = c.tenant_id and s.caller_id = c.caller_id and s.request_id = c.request_id
      left join core.request k
        on k.tenant_id = c.tenant_id and k.caller_id = c.caller_id and k.idempotency_key = c.idempotency_key) f);
end
$$;
comment on function rules.claim_requests(core.call[]) is 'Replays equal requests'' answers, and claims the other requests.';

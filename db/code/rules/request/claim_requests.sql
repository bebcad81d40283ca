-- Splits the writes of a group into new requests and others. A name is a request_id or an
-- idempotency-key.
-- claimed: new requests. No other transaction can perform them until this one ends.
-- outcomes: the answers to all others. An equal retry gets the first answer. A call whose name
--   belongs to a different request is refused. A call whose name is in use, by another transaction
--   or earlier in this group, is handed back; if it may wait, it has already waited and is refused.
create or replace function rules.claim_requests(
  p_calls core.call[], out claimed core.call[], out outcomes core.outcome[])
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_call   core.call;
  v_name   text;
  v_key    text;
  v_names  text[] := '{}';
begin
  foreach v_call in array p_calls loop
    v_name := v_call.caller_id || ' request ' || v_call.request_id;
    v_key := v_call.caller_id || ' key ' || v_call.idempotency_key;
    if v_names && array[v_name, v_key] then
      outcomes := outcomes || (v_call.ordinal, rules.hand_back(), false)::core.outcome;
    elsif rules.claim_request(v_call) then
      v_names := v_names || v_name || v_key;
      claimed := claimed || v_call;
    else
      outcomes := outcomes || (v_call.ordinal, case
        when v_call.may_wait then rules.refuse(v_call, 'REQUEST_IN_PROGRESS')
        else rules.hand_back()
      end, false)::core.outcome;
    end if;
  end loop;

  -- all claimed names are locked now; the usual case: none was used before
  if not exists (
    select
    from unnest(claimed) c
    left join core.request s
      on s.tenant_id = c.tenant_id and s.caller_id = c.caller_id and s.request_id = c.request_id
    where s.request_id is not null or c.idempotency_key is not null)
  then
    return;
  end if;
  outcomes := outcomes || array(
    select (f.ordinal,
            case
              when f.is_replay then rules.restore_answer(f.http_status, f.response)
              else rules.refuse(f.call, 'IDEMPOTENCY_KEY_REUSED')
            end,
            f.is_replay)::core.outcome
    from (
      select c.ordinal, c as call,
             coalesce(s.http_status, k.http_status)::int as http_status,
             coalesce(s.response, k.response) as response,
             (s.request_id is null or (s.operation, s.body_hash) = (c.operation, c.body_hash))
             and (k.request_id is null or (k.operation, k.body_hash) = (c.operation, c.body_hash))
               as is_replay
      from unnest(claimed) c
      left join core.request s
        on s.tenant_id = c.tenant_id
           and s.caller_id = c.caller_id
           and s.request_id = c.request_id
      left join core.request k
        on k.tenant_id = c.tenant_id
           and k.caller_id = c.caller_id
           and k.idempotency_key = c.idempotency_key
      where s.request_id is not null or k.request_id is not null) f);
  claimed := array(
    select c
    from unnest(claimed) c
    where c.ordinal <> all (array(select o.ordinal from unnest(outcomes) o)));
end
$$;
comment on function rules.claim_requests(core.call[]) is
  'Claims new requests and answers retries.';

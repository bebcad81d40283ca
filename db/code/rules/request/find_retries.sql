-- The recorded answers to the retries among these calls; null if there are none. An equal retry
-- gets the first answer. A call whose request_id or idempotency-key belongs to a different request
-- is refused.
create or replace function rules.find_retries(p_calls core.call[], p_ordinals int[])
returns core.answer[]
language plpgsql stable as $$
declare
  v_found    record;
  v_answer   core.answer;
  v_answers  core.answer[];
begin
  -- the usual case: no name was used before
  if not exists (
    select
    from unnest(p_calls) c
    left join core.request s
      on s.tenant_id = c.tenant_id and s.caller_id = c.caller_id and s.request_id = c.request_id
    where c.ordinal = any (p_ordinals)
      -- equivalent mutant (column): both are null if there is no record
      and (s.request_id is not null or c.idempotency_key is not null))
  then
    return null;
  end if;
  for v_found in
    select c as call, case when s.request_id is null then k else s end as record,
           (s.request_id is null or (s.operation, s.body_hash) = (c.operation, c.body_hash))
           and (k.request_id is null or (k.operation, k.body_hash) = (c.operation, c.body_hash))
             as is_replay
    from unnest(p_calls) c
    left join core.request s
      on s.tenant_id = c.tenant_id
         and s.caller_id = c.caller_id
         and s.request_id = c.request_id
    left join core.request k
      on k.tenant_id = c.tenant_id
         and k.caller_id = c.caller_id
         and k.idempotency_key = c.idempotency_key
    where c.ordinal = any (p_ordinals)
      and (s.request_id is not null or k.request_id is not null)
  loop
    v_answer := case
      when v_found.is_replay then rules.restore_answer(v_found.record)
      else rules.refuse(v_found.call, 'IDEMPOTENCY_KEY_REUSED')
    end;
    v_answer.ordinal := (v_found.call).ordinal;
    v_answers := v_answers || v_answer;
  end loop;
  return v_answers;
end
$$;

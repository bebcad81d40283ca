-- Nothing: the request is new, and nobody else can work on its request_id or idempotency-key until this
-- transaction ends. Else the answer: the first one, when this is an equal retry; a refusal; or (0, null)
-- when an equal request is being worked on and this call may not wait.
create or replace function rules.claim_request(
  p_call core.call, p_operation text, out answer core.answer, out is_replay boolean)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_key       text := coalesce(p_call.idempotency_key, p_call.request_id);
  v_scope     text := format('request %s %s ', p_call.tenant_id, p_call.caller_id);
  v_same      core.request;
  v_key_mate  core.request;
  v_first     core.request;
begin
  is_replay := false;

  -- both names in one order, so that two calls that cross them cannot wait for each other
  if not p_call.may_wait then
    if not (pg_try_advisory_xact_lock(hashtextextended(v_scope || least(p_call.request_id, v_key), 0))
            and pg_try_advisory_xact_lock(hashtextextended(v_scope || greatest(p_call.request_id, v_key), 0)))
    then
      answer := (0, null);
      return;
    end if;
  else
    begin
      perform pg_advisory_xact_lock(hashtextextended(v_scope || least(p_call.request_id, v_key), 0));
      perform pg_advisory_xact_lock(hashtextextended(v_scope || greatest(p_call.request_id, v_key), 0));
    exception when lock_not_available then
      answer := rules.refuse(p_call, 'REQUEST_IN_PROGRESS');
      return;
    end;
  end if;

  -- by each name; two statements, as one with "or" reads every request of the caller
  select q.* into v_same
  from core.request q
  where q.tenant_id = p_call.tenant_id and q.caller_id = p_call.caller_id and q.request_id = p_call.request_id;
  if p_call.idempotency_key is not null then
    select q.* into v_key_mate
    from core.request q
    where q.tenant_id = p_call.tenant_id
      and q.caller_id = p_call.caller_id
      and q.idempotency_key = p_call.idempotency_key;
  end if;
  v_first := case when v_same.request_id is null then v_key_mate else v_same end;
  if v_first.request_id is null then
    return;
  end if;
  is_replay := (v_same.request_id is null or (v_same.operation, v_same.body_hash) = (p_operation, p_call.body_hash))
    and (v_key_mate.request_id is null or (v_key_mate.operation, v_key_mate.body_hash) = (p_operation, p_call.body_hash));
  answer := case
    when is_replay then (v_first.http_status::int, v_first.response)::core.answer
    else rules.refuse(p_call, 'IDEMPOTENCY_KEY_REUSED')
  end;
end
$$;
comment on function rules.claim_request(core.call, text) is 'Replays an equal request''s answer, or claims the request.';

-- One call: credential, nonce, then replay or claim, operation, record.
create or replace function rules.perform_one(
  p_tenant_id int, p_request jsonb, p_may_wait boolean, out answer core.answer, out is_replay boolean)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_call             core.call;
  v_operation        text := p_request ->> 'operation';
  v_claim            record;
  v_is_write         boolean := v_operation not in (
    'query', 'get_batch', 'get_request', 'pull_events', 'list_reconciliations', 'get_reconciliation');
begin
  is_replay := false;
  v_call := rules.identify_caller(p_tenant_id, p_request, p_may_wait);
  if v_call.caller_id is null then
    answer := rules.refuse(v_call, 'UNAUTHENTICATED');
    return;
  end if;
  if not rules.spend_nonce(p_tenant_id, (p_request ->> 'credential_id')::int, p_request ->> 'nonce') then
    answer := rules.refuse(v_call, 'NONCE_REUSED');
    return;
  end if;
  if v_operation = 'refuse' then
    answer := (0, null);
    return;
  end if;
  if v_is_write then
    v_claim := rules.claim_request(v_call, v_operation);
    if (v_claim.answer).http_status is not null then
      answer := v_claim.answer;
      is_replay := v_claim.is_replay;
      return;
    end if;
  end if;

  answer := case v_operation
    when 'redeem' then api.redeem(v_call)
    when 'lock' then api.lock(v_call)
    when 'confirm' then api.confirm(v_call)
    when 'cancel' then api.cancel(v_call)
    when 'query' then api.query(v_call)
    when 'reverse' then api.reverse(v_call)
    when 'void' then api.void(v_call)
    when 'create_batch' then api.create_batch(v_call)
    when 'get_batch' then api.get_batch(v_call)
    when 'allocate_batch' then api.allocate_batch(v_call)
    when 'get_request' then api.get_request(v_call)
    when 'pull_events' then api.pull_events(v_call)
    when 'list_reconciliations' then api.list_reconciliations(v_call)
    when 'get_reconciliation' then api.get_reconciliation(v_call)
  end;
  if answer.http_status is null then
    raise exception 'no such operation: %', v_operation;
  end if;
  if v_is_write and answer.http_status in (200, 404, 409, 422)
     and answer.body not like '{"code":"IDEMPOTENCY_KEY_REUSED"%'
  then
    insert into core.request
      (tenant_id, caller_id, request_id, idempotency_key, operation, body_hash, http_status, response, recorded_at)
    values
      (p_tenant_id, v_call.caller_id, v_call.request_id, v_call.idempotency_key, v_operation, v_call.body_hash,
       answer.http_status, answer.body, clock_timestamp());
  end if;
end
$$;
comment on function rules.perform_one(int, jsonb, boolean) is 'Performs one call, or replays its answer.';

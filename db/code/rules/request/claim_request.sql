-- Claims the request_id and the idempotency-key of a lone call until this transaction ends. Returns
-- false if another transaction holds one of them, and this call may not wait or has waited until
-- the timeout. Locks both names in sorted order, so two calls with swapped names cannot deadlock.
create or replace function rules.claim_request(p_call core.call) returns boolean
language plpgsql volatile as $$
declare
  v_id   bigint := rules.compute_name_lock(p_call.tenant_id, p_call.caller_id, p_call.request_id);
  v_key  bigint := v_id;
begin
  if p_call.idempotency_key is not null then
    v_key := rules.compute_name_lock(p_call.tenant_id, p_call.caller_id, p_call.idempotency_key);
  end if;
  if not p_call.may_wait then
    return pg_try_advisory_xact_lock(v_id)
      -- equivalent mutant (operand v_key = v_id): a session gets its own advisory lock again
      and (v_key = v_id or pg_try_advisory_xact_lock(v_key));
  end if;
  begin
    perform pg_advisory_xact_lock(least(v_id, v_key));
    perform pg_advisory_xact_lock(greatest(v_id, v_key));
    return true;
  exception when lock_not_available then
    return false;
  end;
end
$$;

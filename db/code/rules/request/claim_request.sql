-- Claims the request_id and the idempotency-key of a call until this transaction ends. False:
-- another transaction holds one of them, and this call may not wait or waited until the timeout.
-- Locks both names in sorted order, so two calls with swapped names cannot deadlock.
create or replace function rules.claim_request(p_call core.call) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_scope   text := format('request %s %s ', p_call.tenant_id, p_call.caller_id);
  v_key     text := coalesce(p_call.idempotency_key, p_call.request_id);
  v_first   bigint := hashtextextended(v_scope || least(p_call.request_id, v_key), 0);
  v_second  bigint := hashtextextended(v_scope || greatest(p_call.request_id, v_key), 0);
begin
  if not p_call.may_wait then
    return pg_try_advisory_xact_lock(v_first)
      and (v_second = v_first or pg_try_advisory_xact_lock(v_second));
  end if;
  begin
    perform pg_advisory_xact_lock(v_first);
    perform pg_advisory_xact_lock(v_second);
    return true;
  exception when lock_not_available then
    return false;
  end;
end
$$;
comment on function rules.claim_request(core.call) is
  'Claims the request_id and idempotency-key of a call for this transaction.';

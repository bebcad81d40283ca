-- True: nobody else works on the call's request_id or idempotency-key until this transaction ends. False:
-- somebody does, and this call may not wait, or has waited long enough.
-- Both names in one order, so that two calls that cross them cannot wait for each other.
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
comment on function rules.claim_request(core.call) is 'Takes the names of a request for this transaction.';

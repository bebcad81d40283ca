-- Finds the caller's own lock that a confirm or cancel names. The name is the request_id of the
-- lock, or that of a retry that was found by its idempotency-key. If the ID was used again after
-- its record was pruned, this returns the latest lock.
create or replace function rules.find_lock(p_call core.call, p_coupon_id uuid)
returns core.redemption
language plpgsql stable as $$
declare
  v_found    core.redemption;
  v_retried  core.redemption;
begin
  select r.* into v_found
  from core.redemption r
  where r.tenant_id = p_call.tenant_id
    and r.coupon_id = p_coupon_id
    and r.caller_id = p_call.caller_id
    and r.lock_request_id = p_call.args ->> 'lock_request_id'
  order by r.started_at desc
  limit 1;
  -- a lock that has not ended is the latest one of its coupon
  if v_found.redemption_id is null or v_found.ended_at is not null then
    select r.* into v_retried
    from core.request q
    join core.redemption r
      on r.tenant_id = q.tenant_id
         and r.coupon_id = p_coupon_id
         and r.caller_id = q.caller_id
         and r.lock_request_id = q.first_request_id
         and r.started_at = q.recorded_at
    where q.tenant_id = p_call.tenant_id
      and q.caller_id = p_call.caller_id
      and q.request_id = p_call.args ->> 'lock_request_id';
    if found and (v_retried.started_at < v_found.started_at) is not true then
      return v_retried;
    end if;
  end if;
  return v_found;
end
$$;

-- Whether the cancel of this lock was answered before it. Read this when the coupon's row is held:
-- a cancel holds it too.
create or replace function rules.is_lock_cancelled(p_call core.call, p_coupon_id uuid)
returns boolean
language plpgsql stable as $$
begin
  return exists (
    select
    from core.lock_cancellation x
    where x.tenant_id = p_call.tenant_id
      and x.coupon_id = p_coupon_id
      and x.caller_id = p_call.caller_id
      and x.lock_request_id = p_call.request_id);
end
$$;

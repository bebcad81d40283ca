-- POST /v1/coupons/cancel ends the caller's own lock. A cancel that arrives before its lock is
-- recorded, and the late lock is refused: a till that gave up must not leave the coupon locked.
create or replace function api.cancel(p_call core.call) returns core.answer
language plpgsql volatile as $$
declare
  v_held     record;
  v_coupon   core.coupon;
  v_lock     core.redemption;
  v_now      timestamptz;
  v_refusal  core.answer;
begin
  -- lock rows
  v_held := rules.hold_lock(p_call);
  if not v_held.is_held then
    return v_held.answer;
  end if;

  -- decide
  v_now := clock_timestamp();
  v_lock := v_held.lock;
  v_refusal := rules.check_lock(p_call, v_lock, v_now);

  -- write: a cancel without a lock is recorded, although it is refused
  if v_lock.redemption_id is null then
    insert into core.lock_cancellation
      (tenant_id, caller_id, coupon_id, lock_request_id, recorded_at)
    values
      (p_call.tenant_id, p_call.caller_id, v_held.coupon_id, p_call.args ->> 'lock_request_id',
       v_now)
    on conflict do nothing;
  end if;
  if v_refusal.http_status is not null then
    return v_refusal;
  end if;
  update core.redemption r
  set status = 'CANCELLED', ended_at = v_now
  where r.tenant_id = p_call.tenant_id and r.redemption_id = v_lock.redemption_id;
  select c.* into v_coupon
  from core.coupon c where c.tenant_id = p_call.tenant_id and c.coupon_id = v_held.coupon_id;
  perform rules.free_coupon(v_coupon, v_now);

  -- answer
  return rules.succeed(format('{"ok":true,"redemption":"%s","status":"CANCELLED"}',
    rules.format_id('red', v_lock.redemption_id)));
end
$$;

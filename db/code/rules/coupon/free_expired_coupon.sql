-- Marks the lock of a coupon as LAPSED if it has expired, and frees the coupon. Returns whether it
-- did. The calling function holds the rows of the coupon and of the lock.
create or replace function rules.free_expired_coupon(p_coupon core.coupon) returns boolean
language plpgsql volatile as $$
declare
  v_now  timestamptz := clock_timestamp();
  v_end  timestamptz;
begin
  update core.redemption r
  set status = 'LAPSED', ended_at = v_now
  where r.tenant_id = p_coupon.tenant_id
    and r.coupon_id = p_coupon.coupon_id
    and r.status = 'LOCKED'
    and r.lock_expires_at <= v_now
  returning r.lock_expires_at into v_end;
  if not found then
    return false;
  end if;
  perform rules.free_coupon(p_coupon, v_end);
  return true;
end
$$;

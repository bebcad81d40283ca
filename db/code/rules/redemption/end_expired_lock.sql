-- A coupon that is LOCKED, as it is once an expired lock is marked as LAPSED: a coupon has at most
-- one live lock or redemption. Null if this would have to wait. The calling function holds the
-- coupon's row.
create or replace function rules.end_expired_lock(p_call core.call, p_coupon core.coupon)
returns core.coupon
language plpgsql volatile as $$
declare
  v_lock    uuid;
  v_coupon  core.coupon := p_coupon;
begin
  select r.redemption_id into v_lock
  from core.redemption r
  where r.coupon_id = p_coupon.coupon_id
    and r.tenant_id = p_coupon.tenant_id
    and r.status = 'LOCKED'
    and r.lock_expires_at <= clock_timestamp();
  if not found then
    return v_coupon;
  elsif not (rules.hold_redemption(p_call, v_lock)).is_held then
    return null;
  end if;
  perform rules.free_expired_coupon(p_coupon);
  select k.* into v_coupon
  from core.coupon k
  where k.tenant_id = p_coupon.tenant_id and k.coupon_id = p_coupon.coupon_id;
  return v_coupon;
end
$$;

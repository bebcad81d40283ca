-- Locks the rows of the coupon that a confirm or cancel names and of the caller's lock on it. If
-- is_held is false, the operation returns answer. lock is null if the caller has none.
create or replace function rules.hold_lock(
  p_call core.call, out is_held boolean, out coupon_id uuid, out lock core.redemption,
  out answer core.answer)
language plpgsql volatile as $$
declare
  v_coupon  record := rules.hold_coupon(p_call, (p_call.args ->> 'coupon')::uuid);
  v_lock    record;
begin
  is_held := v_coupon.is_held;
  coupon_id := v_coupon.coupon_id;
  answer := v_coupon.answer;
  if is_held then
    v_lock := rules.hold_redemption(p_call, (rules.find_lock(p_call, coupon_id)).redemption_id);
    is_held := v_lock.is_held;
    lock := v_lock.redemption;
  end if;
end
$$;

-- Finds a coupon by the lookup hash of its code, locks its row until the end of the transaction,
-- and returns its key. If it cannot lock the row, answer is what the operation returns: there is no
-- such coupon, or another session holds the row and this call may not wait.
--
-- This is the first row lock: only the advisory locks on the request come before it. Every change
-- of a coupon or its redemptions holds this row. Read the coupon and the clock afterwards, never
-- before: both may be stale after a wait.
create or replace function rules.hold_coupon(
  p_call core.call, p_lookup_hash uuid, out is_held boolean, out coupon_id uuid,
  out answer core.answer)
language plpgsql volatile as $$
begin
  if p_call.may_wait then
    select c.coupon_id into hold_coupon.coupon_id
    from core.coupon c
    where c.tenant_id = p_call.tenant_id and c.lookup_hash = p_lookup_hash
    for no key update;
  else
    select c.coupon_id into hold_coupon.coupon_id
    from core.coupon c
    where c.tenant_id = p_call.tenant_id and c.lookup_hash = p_lookup_hash
    for no key update skip locked;
  end if;
  is_held := found;
  if not is_held then
    answer := case
      when exists (
        select from core.coupon c
        where c.tenant_id = p_call.tenant_id and c.lookup_hash = p_lookup_hash)
        then rules.hand_back()
      else rules.refuse_not_found(p_call, 'coupon')
    end;
  end if;
end
$$;

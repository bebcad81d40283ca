-- Locks the row of a coupon until the end of the transaction and returns its key. Null: no such
-- coupon. is_busy: another session holds the row and this call may not wait, so hand it back.
--
-- First of the row locks: only the advisory locks on the request come before it. Every change of a
-- coupon or its redemptions holds this row. Read the coupon and the clock afterwards, never before:
-- both may be stale after a wait.
create or replace function rules.hold_coupon(
  p_call core.call, p_lookup_hash uuid, out coupon_id uuid, out is_busy boolean)
language plpgsql volatile as $$
begin
  is_busy := false;
  if p_call.may_wait then
    select c.coupon_id into hold_coupon.coupon_id
    from core.coupon c
    where c.tenant_id = p_call.tenant_id and c.lookup_hash = p_lookup_hash
    for no key update;
    return;
  end if;
  select c.coupon_id into hold_coupon.coupon_id
  from core.coupon c
  where c.tenant_id = p_call.tenant_id and c.lookup_hash = p_lookup_hash
  for no key update skip locked;
  if not found then
    is_busy := exists (
      select from core.coupon c
      where c.tenant_id = p_call.tenant_id and c.lookup_hash = p_lookup_hash);
  end if;
end
$$;
comment on function rules.hold_coupon(core.call, uuid) is
  'Locks the row of a coupon, by the lookup hash of its code.';

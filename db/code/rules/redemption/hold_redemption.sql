-- Locks the row of a redemption until the end of the transaction and returns its current state.
-- Null locks nothing. is_busy: another session holds the row and this call may not wait, so hand it
-- back. That can only be a psql session, because the caller holds the coupon's row.
create or replace function rules.hold_redemption(
  p_call core.call, p_redemption_id uuid, out redemption core.redemption, out is_busy boolean)
language plpgsql volatile as $$
begin
  is_busy := false;
  if p_redemption_id is null then
    return;
  elsif p_call.may_wait then
    select r.* into redemption
    from core.redemption r
    where r.tenant_id = p_call.tenant_id and r.redemption_id = p_redemption_id
    for no key update;
    return;
  end if;
  select r.* into redemption
  from core.redemption r
  where r.tenant_id = p_call.tenant_id and r.redemption_id = p_redemption_id
  for no key update skip locked;
  is_busy := not found;
end
$$;
comment on function rules.hold_redemption(core.call, uuid) is
  'Locks the row of a redemption whose coupon is locked.';

-- Locks the row of a redemption until the end of the transaction and returns its current state.
-- Locks nothing if p_redemption_id is null. If is_held is false, another session holds the row and
-- this call may not wait: hand it back. That can only be a psql session, because the caller holds
-- the coupon's row.
create or replace function rules.hold_redemption(
  p_call core.call, p_redemption_id uuid, out is_held boolean, out redemption core.redemption)
language plpgsql volatile as $$
begin
  is_held := true;
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
  is_held := found;
end
$$;

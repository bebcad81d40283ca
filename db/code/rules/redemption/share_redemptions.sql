-- The other side of rules.hold_redemptions, for a transaction that locks or redeems coupons, before
-- it reads their batches. From here on it waits for nothing, so a call that may wait first waits
-- for its coupon. Returns false if a suspension is about to commit and the call may not wait.
create or replace function rules.share_redemptions(p_call core.call) returns boolean
language plpgsql volatile as $$
begin
  if not p_call.may_wait then
    return pg_try_advisory_xact_lock_shared(rules.compute_redemptions_lock(p_call.tenant_id));
  end if;
  perform
  from core.coupon k
  where k.tenant_id = p_call.tenant_id and k.lookup_hash = (p_call.args ->> 'coupon')::uuid
  for no key update;
  perform pg_advisory_xact_lock_shared(rules.compute_redemptions_lock(p_call.tenant_id));
  return true;
end
$$;

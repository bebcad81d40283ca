-- The other side of rules.hold_redemptions, for a transaction that locks or redeems coupons, before
-- it reads their batches. From here on it waits for nothing. Returns the calls that may go on: none
-- if a suspension is about to commit and they may not wait for it.
create or replace function rules.share_redemptions(p_call core.call, p_held int[]) returns int[]
language plpgsql volatile as $$
begin
  if p_call.may_wait then
    perform pg_advisory_xact_lock_shared(rules.compute_redemptions_lock(p_call.tenant_id));
  elsif not pg_try_advisory_xact_lock_shared(
    rules.compute_redemptions_lock(p_call.tenant_id))
  then
    return '{}';
  end if;
  return p_held;
end
$$;

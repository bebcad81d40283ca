-- POST /v1/coupons/lock locks a coupon; a confirm completes the redemption. The answer states the
-- discount and when the lock expires. rules.perform_redemptions does the work, as it does for
-- redeems.
create or replace function api.lock(p_calls core.call[], p_ordinals int[]) returns core.answer[]
language plpgsql volatile as $$
begin
  return rules.perform_redemptions(p_calls, p_ordinals, 'LOCKED');
end
$$;

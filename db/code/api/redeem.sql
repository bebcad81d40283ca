-- POST /v1/coupons/redeem locks and confirms in one step. rules.perform_redemptions does the work,
-- as it does for locks.
create or replace function api.redeem(p_calls core.call[], p_ordinals int[]) returns core.answer[]
language plpgsql volatile as $$
begin
  return rules.perform_redemptions(p_calls, p_ordinals, 'REDEEMED');
end
$$;

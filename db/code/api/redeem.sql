-- POST /v1/coupons/redeem: Lock and confirm in one step. rules.perform_redemptions does the work,
-- for locks too.
create or replace function api.redeem(p_calls core.call[], p_ordinals int[]) returns core.outcome[]
language plpgsql volatile as $$
begin
  return rules.perform_redemptions(p_calls, p_ordinals, 'REDEEMED');
end
$$;

-- Lock and confirm in one step. rules.decide_redemptions decides, rules.write_redemptions writes,
-- and rules.perform_redemptions calls both and renders the answers. Lock uses the same functions.
create or replace function api.redeem(p_calls core.call[]) returns core.outcome[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  return rules.perform_redemptions(p_calls, 'REDEEMED');
end
$$;
comment on function api.redeem(core.call[]) is 'POST /v1/coupons/redeem';

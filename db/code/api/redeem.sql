-- Lock and confirm in one step.
create or replace function api.redeem(p_calls core.call[]) returns core.outcome[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  return rules.perform_redemptions(p_calls, 'REDEEMED');
end
$$;
comment on function api.redeem(core.call[]) is 'POST /v1/coupons/redeem';

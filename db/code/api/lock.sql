-- Locks coupons; a confirm completes the redemption. The answer states the discount and when the
-- lock expires. rules.decide_redemptions decides, rules.write_redemptions writes, and
-- rules.perform_redemptions calls both and renders the answers. Redeem uses the same functions.
create or replace function api.lock(p_calls core.call[]) returns core.outcome[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  return rules.perform_redemptions(p_calls, 'LOCKED');
end
$$;
comment on function api.lock(core.call[]) is 'POST /v1/coupons/lock';

-- Locks coupons for redemptions that a confirm completes. The answer states the discount and when
-- the lock expires.
create or replace function api.lock(p_calls core.call[]) returns core.outcome[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  return rules.perform_redemptions(p_calls, 'LOCKED');
end
$$;
comment on function api.lock(core.call[]) is 'POST /v1/coupons/lock';

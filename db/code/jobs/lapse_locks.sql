-- Marks up to p_limit expired locks as LAPSED and returns how many. (Answers treat a lock as gone
-- once it has expired.) Their coupons become ISSUED again, or EXPIRED with an event. Skips locks
-- whose coupon or redemption another session holds.
create or replace function jobs.lapse_locks(p_limit int) returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off as $$
declare
  v_due     timestamptz := clock_timestamp();  -- constant, so that it bounds the index scan
  v_coupon  core.coupon;
  v_done    int := 0;
begin
  for v_coupon in
    select c.*
    from core.redemption r
    join core.coupon c on c.tenant_id = r.tenant_id and c.coupon_id = r.coupon_id
    where r.status = 'LOCKED' and r.lock_expires_at <= v_due
    order by r.lock_expires_at
    limit p_limit
    for no key update of c, r skip locked
  loop
    if rules.lapse_expired_lock(v_coupon) then
      v_done := v_done + 1;
    end if;
  end loop;
  return v_done;
end
$$;
comment on function jobs.lapse_locks(int) is 'Marks expired locks as LAPSED; returns how many.';

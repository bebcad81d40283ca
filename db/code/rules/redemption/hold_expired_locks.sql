-- Locks the rows of up to p_limit expired locks and of their coupons, and returns the coupons in
-- the order in which their locks ended. Skips rows that another session holds, and coupons that
-- could not be freed within the last minute.
create or replace function rules.hold_expired_locks(p_limit int) returns setof core.coupon
language plpgsql volatile as $$
declare
  v_due       timestamptz := clock_timestamp();  -- constant, so that it bounds the index scan
  v_departed  int[] := rules.find_departed();
  v_resting   text[] := array(
    select s.subject
    from core.stuck_work s
    where s.work = 'locks' and s.tried_at > v_due - interval '1 minute');
begin
  return query
  select c.*
  from core.redemption r
  join core.coupon c on c.tenant_id = r.tenant_id and c.coupon_id = r.coupon_id
  where r.status = 'LOCKED' and r.lock_expires_at <= v_due and r.tenant_id <> all (v_departed)
    and case
      when cardinality(v_resting) > 0
        then rules.format_id('cpn', c.coupon_id) <> all (v_resting)
      else true
    end
  order by r.lock_expires_at
  limit p_limit
  for no key update of c, r skip locked;
end
$$;

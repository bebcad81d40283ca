-- Marks the expired locks on the coupons that these calls hold as LAPSED, whatever the answers will
-- be: a coupon has at most one live lock or redemption. Returns the calls that still hold what they
-- need, without those that would have to wait.
create or replace function rules.lapse_group_locks(p_calls core.call[], p_held int[])
returns int[]
language plpgsql volatile as $$
declare
  v_case  record;
  v_held  int[] := p_held;
begin
  for v_case in
    select c as call, k as coupon, r.redemption_id
    from unnest(p_calls) c
    join core.coupon k
      on k.tenant_id = c.tenant_id and k.lookup_hash = (c.args ->> 'coupon')::uuid
    join core.redemption r
      -- equivalent mutant (operand r.tenant_id = k.tenant_id): its tenant is asked later
      on r.coupon_id = k.coupon_id and r.tenant_id = k.tenant_id and r.status = 'LOCKED'
    where c.ordinal = any (p_held) and r.lock_expires_at <= clock_timestamp()
  loop
    if (rules.hold_redemption(v_case.call, v_case.redemption_id)).is_held then
      perform rules.free_expired_coupon(v_case.coupon);
    else
      v_held := array_remove(v_held, (v_case.call).ordinal);
    end if;
  end loop;
  return v_held;
end
$$;

-- Marks the expired locks that the grants of these calls end, before the new ones are written: a
-- coupon has one live lock or redemption. A refusal changes nothing. Returns the calls that still
-- hold what they need: a call that would have to wait for the row of a lock is left out.
create or replace function rules.lapse_expired_locks(
  p_calls core.call[], p_ordinals int[], p_held int[], p_now timestamptz)
returns int[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_case  record;
  v_held  int[] := p_held;
begin
  for v_case in
    select d.call, r.redemption_id
    from rules.decide_redemptions(p_calls, p_ordinals, p_held, p_now) d
    join core.redemption r
      on r.coupon_id = d.coupon_id and r.tenant_id = (d.call).tenant_id and r.status = 'LOCKED'
    where d.is_granted
  loop
    if (rules.hold_redemption(v_case.call, v_case.redemption_id)).is_busy then
      v_held := array_remove(v_held, (v_case.call).ordinal);
    else
      perform rules.lapse_lock((v_case.call).tenant_id, v_case.redemption_id, p_now);
    end if;
  end loop;
  return v_held;
end
$$;
comment on function rules.lapse_expired_locks(core.call[], int[], int[], timestamptz) is
  'Marks the expired locks that grants end as LAPSED.';

-- Marks the expired locks that the grants of these calls end, before the new ones are written: a
-- coupon has one live lock or redemption. A refusal changes nothing. The caller holds the rows of
-- the locks, so p_now is a moment after any wait.
create or replace function rules.lapse_expired_locks(
  p_calls core.call[], p_ordinals int[], p_held int[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_case  record;
begin
  for v_case in
    select (d.call).tenant_id, r.redemption_id
    from rules.decide_redemptions(p_calls, p_ordinals, p_held, p_now) d
    join core.redemption r
      on r.coupon_id = d.coupon_id and r.tenant_id = (d.call).tenant_id and r.status = 'LOCKED'
    where d.is_granted
  loop
    perform rules.lapse_lock(v_case.tenant_id, v_case.redemption_id, p_now);
  end loop;
end
$$;
comment on function rules.lapse_expired_locks(core.call[], int[], int[], timestamptz) is
  'Marks the expired locks that grants end as LAPSED.';

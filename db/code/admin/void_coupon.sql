-- Voids an unused coupon on behalf of nobody at a till. A live lock is released first, by
-- admin.release_lock, on purpose: somebody is standing there.
create or replace function admin.void_coupon(p_tenant text, p_coupon text, p_reason text)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_coupon  core.coupon := rules.hold_coupon_for_patch(p_tenant, p_coupon);
  v_now     timestamptz := clock_timestamp();
  v_lock    core.redemption;
begin
  select r.* into v_lock
  from core.redemption r
  where r.tenant_id = v_coupon.tenant_id and r.coupon_id = v_coupon.coupon_id and r.status = 'LOCKED';
  if rules.derive_status(v_coupon.status, v_coupon.valid_to, v_lock.lock_expires_at, true, 'A', v_now) <> 'ISSUED' then
    raise exception 'coupon % is %: not voidable', p_coupon,
      rules.derive_status(v_coupon.status, v_coupon.valid_to, v_lock.lock_expires_at, true, 'A', v_now)
      using errcode = 'CP409';
  end if;
  perform rules.lapse_lock(v_coupon.tenant_id, v_lock.redemption_id, v_now);
  perform rules.write_voiding(
    v_coupon, (rules.find_batch_of_coupon(v_coupon.tenant_id, v_coupon.coupon_id)).distributor_id, null, 0, v_reason, v_now);
  perform rules.write_audit(v_coupon.tenant_id, 'void_coupon', p_coupon, v_reason);
end
$$;
comment on function admin.void_coupon(text, text, text) is 'Voids one unused coupon.';

create or replace function admin.void_coupon(p_tenant text, p_coupon text, p_reason text)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_coupon  core.coupon := rules.hold_coupon_for_patch(p_tenant, p_coupon);
  v_batch   core.batch := rules.find_batch_of_coupon(v_coupon.tenant_id, v_coupon.coupon_id);
  v_now     timestamptz := clock_timestamp();
  v_lock    core.redemption;
  v_status  text;
begin
  select r.* into v_lock
  from core.redemption r
  where r.tenant_id = v_coupon.tenant_id
    and r.coupon_id = v_coupon.coupon_id
    and r.status = 'LOCKED';
  v_status := rules.derive_status(
    -- equivalent mutant (literal 'A'): the variant matters only before the release
    v_coupon.status, v_coupon.valid_to, v_lock.lock_expires_at, true, 'A', v_now);
  if v_status <> 'ISSUED' then
    raise exception 'coupon % is % and cannot be voided', p_coupon, v_status
      using errcode = 'CP409';
  end if;
  perform rules.mark_lapsed(v_coupon.tenant_id, v_lock.redemption_id, v_now);
  perform rules.write_voidings(v_batch, array[v_coupon.coupon_id], null, 0, v_reason, v_now);
  perform rules.write_audit(v_coupon.tenant_id, 'void_coupon', p_coupon, v_reason,
    jsonb_build_object('status', jsonb_build_object('old', v_coupon.status, 'new', 'VOIDED')));
end
$$;
comment on function admin.void_coupon(text, text, text) is
  'Voids an unused coupon for an administrator. Refuses a locked coupon, because a customer may '
  'be at the till: release the lock first with admin.release_lock.';

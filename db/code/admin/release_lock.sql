create or replace function admin.release_lock(p_tenant text, p_coupon text, p_reason text)
returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_coupon  core.coupon := rules.hold_coupon_for_patch(p_tenant, p_coupon);
  v_now     timestamptz := clock_timestamp();
  v_id      uuid;
begin
  update core.redemption r
  set status = 'CANCELLED', ended_at = v_now
  where r.tenant_id = v_coupon.tenant_id and r.coupon_id = v_coupon.coupon_id
    and r.status = 'LOCKED' and r.lock_expires_at > v_now
  returning r.redemption_id into v_id;
  if not found then
    raise exception 'coupon % is % and has no lock to release', p_coupon, v_coupon.status
      using errcode = 'CP409';
  end if;
  perform rules.free_coupon(v_coupon, v_now);
  perform rules.write_audit(v_coupon.tenant_id, 'release_lock', p_coupon, v_reason,
    jsonb_build_object('redemption', rules.format_id('red', v_id)));
  return rules.format_id('red', v_id);
end
$$;
comment on function admin.release_lock(text, text, text) is
  'Ends a live lock early: the redemption becomes CANCELLED, and the till''s confirm is refused '
  'as LOCK_CANCELLED. Returns the ID of the cancelled redemption.';

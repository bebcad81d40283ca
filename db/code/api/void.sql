-- POST /v1/coupons/void makes an unused coupon invalid for good: an ISSUED one or, in Variant B,
-- also a CREATED one. A coupon whose lock has expired counts as ISSUED.
create or replace function api.void(p_call core.call) returns core.answer
language plpgsql volatile as $$
declare
  v_merchant_id  int := rules.find_merchant(p_call, p_call.args ->> 'merchant');
  v_held         record;
  v_coupon       core.coupon;
  v_batch        core.batch;
  v_lock         core.redemption;
  v_now          timestamptz;
begin
  -- lock rows
  if v_merchant_id is null then
    return rules.refuse_not_found(p_call, 'merchant');
  end if;
  v_held := rules.hold_coupon(p_call, (p_call.args ->> 'coupon')::uuid);
  if not v_held.is_held then
    return v_held.answer;
  end if;

  -- decide
  v_now := clock_timestamp();
  v_batch := rules.find_batch_of_coupon(p_call.tenant_id, v_held.coupon_id);
  if not rules.is_in_scope(p_call.tenant_id, v_batch.template_id, v_merchant_id) then
    return rules.refuse(p_call, 'MERCHANT_NOT_IN_SCOPE');
  end if;
  select c.* into v_coupon
  from core.coupon c where c.tenant_id = p_call.tenant_id and c.coupon_id = v_held.coupon_id;
  select r.* into v_lock
  from core.redemption r
  where r.tenant_id = p_call.tenant_id and r.coupon_id = v_held.coupon_id and r.status = 'LOCKED';
  if rules.derive_status(
       v_coupon.status, v_coupon.valid_to, v_lock.lock_expires_at, v_batch.status = 'ALLOCATED',
       p_call.variant, v_now) not in ('CREATED', 'ISSUED')
  then
    return rules.refuse(p_call, 'COUPON_NOT_VOIDABLE');
  end if;

  -- lock rows: an expired lock, which the voiding ends
  if not (rules.hold_redemption(p_call, v_lock.redemption_id)).is_held then
    return rules.hand_back();
  end if;

  -- write
  perform rules.mark_lapsed(p_call.tenant_id, v_lock.redemption_id, v_now);
  perform rules.write_voidings(
    v_batch, array[v_coupon.coupon_id], v_merchant_id, p_call.caller_id, p_call.args ->> 'reason',
    v_now);

  -- answer
  return rules.succeed(format('{"ok":true,"coupon_id":"%s","status":"VOIDED"}',
    rules.format_id('cpn', v_coupon.coupon_id)));
end
$$;

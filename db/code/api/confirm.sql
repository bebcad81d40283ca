-- POST /v1/coupons/confirm completes the redemption of the caller's own lock. It does not check
-- again whether the template covers the lock's merchant: a lock can be confirmed until it expires.
create or replace function api.confirm(p_call core.call) returns core.answer
language plpgsql volatile as $$
declare
  v_merchant_id  int := rules.find_merchant(p_call, p_call.args ->> 'merchant');
  v_held         record;
  v_batch        core.batch;
  v_lock         core.redemption;
  v_now          timestamptz;
  v_refusal      core.answer;
begin
  -- lock rows
  if v_merchant_id is null then
    return rules.refuse_not_found(p_call, 'merchant');
  end if;
  v_held := rules.hold_lock(p_call);
  if not v_held.is_held then
    return v_held.answer;
  end if;

  -- decide
  v_now := clock_timestamp();
  v_lock := v_held.lock;
  v_batch := rules.find_batch_of_coupon(p_call.tenant_id, v_held.coupon_id);
  if v_lock.merchant_id is distinct from v_merchant_id then
    return rules.refuse(p_call, case
      when rules.is_in_scope(p_call.tenant_id, v_batch.template_id, v_merchant_id)
        then 'LOCK_NOT_FOUND'
      else 'MERCHANT_NOT_IN_SCOPE'
    end);
  end if;
  v_refusal := rules.check_lock(p_call, v_lock, v_now);
  if v_refusal.http_status is not null then
    return v_refusal;
  end if;

  -- write
  update core.redemption r
  set status = 'REDEEMED', redeemed_at = v_now
  where r.tenant_id = p_call.tenant_id and r.redemption_id = v_lock.redemption_id;
  update core.coupon c
  set status = 'REDEEMED'
  where c.tenant_id = p_call.tenant_id and c.coupon_id = v_lock.coupon_id;
  perform rules.write_ledger_entry(v_lock, null, v_batch.distributor_id, v_now);

  -- answer
  return rules.succeed(format('{"ok":true,"redemption":"%s","status":"REDEEMED"}',
    rules.format_id('red', v_lock.redemption_id)));
end
$$;

-- POST /v1/redemptions/reverse reverses a completed redemption in full. The coupon stays REDEEMED,
-- or becomes redeemable again if its template says so (after_reversal = reissued).
create or replace function api.reverse(p_call core.call) returns core.answer
language plpgsql volatile as $$
declare
  v_id           uuid := rules.parse_id('red', p_call.args ->> 'redemption');
  v_reversal_id  uuid := rules.make_id();
  v_redemption   core.redemption;
  v_coupon       core.coupon;
  v_batch        core.batch;
  v_held         record;
  v_found        record;
  v_now          timestamptz;
begin
  -- lock rows: the coupon first, then the redemption; read both again
  select r.* into v_redemption
  from core.redemption r
  join core.merchant m on m.tenant_id = r.tenant_id and m.merchant_id = r.merchant_id
  where r.tenant_id = p_call.tenant_id
    and r.redemption_id = v_id
    and rules.may_act_for(p_call, m.merchant_id, m.party_id);
  if not found then
    return rules.refuse_not_found(p_call, 'redemption');
  end if;
  select c.* into v_coupon
  from core.coupon c where c.tenant_id = p_call.tenant_id and c.coupon_id = v_redemption.coupon_id;
  v_held := rules.hold_coupon(p_call, v_coupon.lookup_hash);
  if not v_held.is_held then
    return v_held.answer;
  end if;
  v_found := rules.hold_redemption(p_call, v_id);
  if not v_found.is_held then
    return rules.hand_back();
  end if;
  v_redemption := v_found.redemption;
  select c.* into v_coupon
  from core.coupon c where c.tenant_id = p_call.tenant_id and c.coupon_id = v_redemption.coupon_id;

  -- decide
  v_now := clock_timestamp();
  if v_redemption.status = 'REVERSED' then
    return rules.refuse(p_call, 'REDEMPTION_REVERSED', (
      select format('{"reversal":"%s","reversed_at":"%s"}',
        rules.format_id('rvs', v.reversal_id), rules.format_time(v.reversed_at))::json
      from core.reversal v
      where v.tenant_id = p_call.tenant_id and v.redemption_id = v_id));
  elsif v_redemption.status <> 'REDEEMED' then
    return rules.refuse(p_call, 'REDEMPTION_NOT_REVERSIBLE');
  end if;

  -- write
  v_batch := rules.find_batch_of_coupon(p_call.tenant_id, v_coupon.coupon_id);
  perform rules.write_reversal(
    v_redemption, v_reversal_id, v_batch.distributor_id, p_call.caller_id,
    p_call.args ->> 'reason', v_now);
  if (select t.after_reversal
      from core.template t
      where t.tenant_id = v_batch.tenant_id and t.template_id = v_batch.template_id) = 'reissued'
  then
    perform rules.free_coupon(v_coupon, v_now);
  end if;

  -- answer
  return rules.succeed(format('{"ok":true,"redemption":"%s","reversal":"%s","status":"REVERSED"}',
    rules.format_id('red', v_id), rules.format_id('rvs', v_reversal_id)));
end
$$;

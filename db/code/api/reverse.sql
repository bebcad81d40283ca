-- POST /v1/redemptions/reverse reverses a completed redemption in full. The coupon stays REDEEMED,
-- or becomes redeemable again if its template says so (after_reversal = reissued).
create or replace function api.reverse(p_call core.call) returns core.answer
language plpgsql volatile as $$
declare
  v_id           uuid := rules.parse_id('red', p_call.args ->> 'redemption');
  v_reversal_id  uuid := rules.make_id();
  v_held         record;
  v_redemption   core.redemption;
  v_now          timestamptz;
begin
  -- lock rows
  if p_call.may_wait and rules.is_redemption_visible(p_call, v_id) then
    perform rules.hold_redemption_and_coupon(p_call.tenant_id, v_id);
  end if;
  select r as redemption, k as coupon, b.distributor_id, t.after_reversal into v_held
  from core.redemption r
  join core.merchant m
    on m.tenant_id = r.tenant_id
       and m.merchant_id = r.merchant_id
       and rules.may_act_for(p_call, m.merchant_id, m.party_id)
  join core.coupon k on k.tenant_id = r.tenant_id and k.coupon_id = r.coupon_id
  join core.batch b on b.tenant_id = k.tenant_id and b.batch_id = k.batch_id
  join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
  where r.tenant_id = p_call.tenant_id and r.redemption_id = v_id
  for no key update of k, r skip locked;
  if not found then
    return case
      when rules.is_redemption_visible(p_call, v_id) then rules.hand_back()
      else rules.refuse_not_found(p_call, 'redemption')
    end;
  end if;

  -- decide
  v_now := clock_timestamp();
  v_redemption := v_held.redemption;
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
  perform rules.write_reversal(
    v_redemption, v_reversal_id, v_held.distributor_id, p_call.caller_id,
    p_call.args ->> 'reason', v_now);
  if v_held.after_reversal = 'reissued' then
    perform rules.free_coupon(v_held.coupon, v_now);
  end if;

  -- answer
  return rules.succeed(format('{"ok":true,"redemption":"%s","reversal":"%s","status":"REVERSED"}',
    p_call.args ->> 'redemption', rules.format_id('rvs', v_reversal_id)));
end
$$;

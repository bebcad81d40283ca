-- Holds and decides a confirm that is not the usual case: granted is what to write, or else answer
-- refuses the call or hands it back. p_grants: the confirms of its group that are granted.
create or replace function rules.decide_confirm(
  p_call core.call, p_grants core.grant[], out granted core.grant, out answer core.answer)
language plpgsql volatile as $$
declare
  v_merchant_id  int := rules.find_merchant(p_call, p_call.args ->> 'merchant');
  v_held         record;
  v_lock         core.redemption;
  v_batch        core.batch;
  v_now          timestamptz;
begin
  if v_merchant_id is null then
    answer := rules.refuse_not_found(p_call, 'merchant');
    return;
  end if;
  v_held := rules.hold_lock(p_call);
  if not v_held.is_held then
    answer := v_held.answer;
    return;
  end if;
  v_now := clock_timestamp();
  v_lock := v_held.lock;
  v_batch := rules.find_batch_of_coupon(p_call.tenant_id, v_held.coupon_id);
  if v_lock.merchant_id is distinct from v_merchant_id then
    answer := rules.refuse(p_call, case
      when rules.is_in_scope(p_call.tenant_id, v_batch.template_id, v_merchant_id)
        then 'LOCK_NOT_FOUND'
      else 'MERCHANT_NOT_IN_SCOPE'
    end);
  elsif v_lock.redemption_id = any (array(select g.redemption_id from unnest(p_grants) g)) then
    answer := rules.hand_back();
  else
    answer := rules.check_lock(p_call, v_lock, v_now);
    if answer.http_status is null then
      granted := rules.make_confirm(p_call, v_lock, v_batch.distributor_id, v_now);
    end if;
  end if;
end
$$;

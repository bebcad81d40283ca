-- POST /v1/batches/suspend stops a batch: from the commit on, locks and redeems of its coupons are
-- refused. Everything else goes on, also for coupons that are locked. A second suspension changes
-- nothing.
create or replace function api.suspend_batch(p_call core.call) returns core.answer
language plpgsql volatile as $$
declare
  v_batch  core.batch := rules.find_batch(p_call.args ->> 'batch');
begin
  -- lock rows
  if not rules.may_use_batch(p_call, v_batch) then
    return rules.refuse_not_found(p_call, 'batch');
  end if;
  if not rules.hold_batch(p_call, v_batch.batch_id) then
    return rules.hand_back();
  end if;

  -- decide
  select b.* into v_batch
  from core.batch b where b.tenant_id = p_call.tenant_id and b.batch_id = v_batch.batch_id;

  -- write
  if v_batch.suspended_at is null then
    if not rules.hold_redemptions(p_call.tenant_id, p_call.may_wait) then
      return rules.hand_back();
    end if;
    perform rules.suspend_batch(
      v_batch, null, p_call.args ->> 'reason', rules.describe_caller(p_call));
  end if;

  -- answer
  return rules.render_batch(p_call.tenant_id, v_batch.batch_id);
end
$$;

-- POST /v1/batches/recall suspends a batch for good. The worker voids its unused coupons
-- (jobs.recall_chunk). A locked one is voided when its lock ends without a confirm
-- (rules.free_coupon). A batch that is still being minted gets no more coupons. A second recall
-- changes nothing.
create or replace function api.recall_batch(p_call core.call) returns core.answer
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
  if v_batch.recalled_at is null then
    if not rules.hold_redemptions(p_call.tenant_id, p_call.may_wait) then
      return rules.hand_back();
    end if;
    perform rules.suspend_batch(
      v_batch, p_call.caller_id, p_call.args ->> 'reason', rules.describe_caller(p_call));
  end if;

  -- answer
  return rules.render_batch(p_call.tenant_id, v_batch.batch_id);
end
$$;

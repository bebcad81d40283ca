-- POST /v1/batches/allocate releases a completed batch as a whole. It goes to the distributor that
-- was set when the batch was created. Only the batch is updated: a coupon counts as released when
-- its batch is. A suspended batch is released and stays suspended; a recalled one is refused.
create or replace function api.allocate_batch(p_call core.call) returns core.answer
language plpgsql volatile as $$
declare
  v_batch  core.batch := rules.find_batch(p_call.args ->> 'batch');
  v_now    timestamptz;
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
  if v_batch.recalled_at is not null or v_batch.status <> 'COMPLETED' then
    return rules.refuse(p_call, case
      when v_batch.recalled_at is not null then 'BATCH_SUSPENDED'
      when v_batch.status = 'PENDING' then 'BATCH_NOT_COMPLETED'
      else 'BATCH_ALREADY_ALLOCATED'
    end);
  end if;

  -- write
  v_now := clock_timestamp();
  update core.batch b
  set status = 'ALLOCATED', allocated_at = v_now
  where b.tenant_id = p_call.tenant_id and b.batch_id = v_batch.batch_id;
  perform rules.write_event(
    p_call.tenant_id, rules.make_id(), 'allocation.completed', v_batch.distributor_id,
    v_batch.batch_id, null, v_now);

  -- answer
  return rules.render_batch(p_call.tenant_id, v_batch.batch_id);
end
$$;

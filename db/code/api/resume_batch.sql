-- POST /v1/batches/resume ends the suspension of a batch. That of a recalled batch never ends. A
-- second resumption changes nothing.
create or replace function api.resume_batch(p_call core.call) returns core.answer
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
  if v_batch.recalled_at is not null then
    return rules.refuse(p_call, 'BATCH_SUSPENDED');
  end if;

  -- write
  if v_batch.suspended_at is not null then
    perform rules.resume_batch(v_batch, p_call.args ->> 'reason', rules.describe_caller(p_call));
  end if;

  -- answer
  return rules.render_batch(p_call.tenant_id, v_batch.batch_id);
end
$$;

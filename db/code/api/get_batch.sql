-- GET /v1/batches/{batch} shows a batch.
create or replace function api.get_batch(p_call core.call) returns core.answer
language plpgsql stable as $$
declare
  v_batch  core.batch := rules.find_batch(p_call.args ->> 'batch');
begin
  if not rules.may_use_batch(p_call, v_batch) then
    return rules.refuse_not_found(p_call, 'batch');
  end if;
  return rules.render_batch(v_batch.tenant_id, v_batch.batch_id);
end
$$;

create or replace function api.get_batch(p_call core.call) returns core.answer
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  return coalesce(
  (select rules.render_batch(b.tenant_id, b.batch_id)
   from core.batch b
   where b.tenant_id = p_call.tenant_id
     and b.external_id = p_call.args ->> 'batch'
     and (p_call.variant = 'A' or b.maker_id = p_call.caller_id)),
  rules.refuse_not_found(p_call, 'batch'));
end
$$;
comment on function api.get_batch(core.call) is 'GET /v1/batches/{batchId}';

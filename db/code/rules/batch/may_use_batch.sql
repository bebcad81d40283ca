-- Whether the caller may read and release a batch. Variant A: any batch of the caller's tenant.
-- Variant B: the batches of the calling maker.
create or replace function rules.may_use_batch(p_call core.call, p_batch core.batch) returns boolean
language plpgsql immutable as $$
begin
  return p_batch.tenant_id is not distinct from p_call.tenant_id
    and (p_call.variant = 'A' or p_batch.maker_id = p_call.caller_id);
end
$$;

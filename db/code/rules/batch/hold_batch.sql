-- Locks the row of a batch until the end of the transaction. Returns false if another session holds
-- it and this call may not wait.
create or replace function rules.hold_batch(p_call core.call, p_batch_id int) returns boolean
language plpgsql volatile as $$
begin
  if p_call.may_wait then
    perform from core.batch b
    -- equivalent mutant (operand b.tenant_id = p_call.tenant_id): batch_id is unique across tenants
    where b.tenant_id = p_call.tenant_id and b.batch_id = p_batch_id
    for no key update;
  else
    perform from core.batch b
    -- equivalent mutant (operand b.tenant_id = p_call.tenant_id): batch_id is unique across tenants
    where b.tenant_id = p_call.tenant_id and b.batch_id = p_batch_id
    for no key update skip locked;
  end if;
  return found;
end
$$;

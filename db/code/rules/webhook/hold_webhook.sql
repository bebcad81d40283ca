-- Locks the row of a webhook until the end of the transaction. Returns false if another session
-- holds it and this call may not wait.
create or replace function rules.hold_webhook(p_call core.call, p_party_id int) returns boolean
language plpgsql volatile as $$
begin
  if p_call.may_wait then
    perform from core.webhook w
    where w.tenant_id = p_call.tenant_id and w.party_id = p_party_id
    for no key update;
  else
    perform from core.webhook w
    where w.tenant_id = p_call.tenant_id and w.party_id = p_party_id
    for no key update skip locked;
  end if;
  return found;
end
$$;

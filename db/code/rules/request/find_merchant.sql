-- Finds a merchant that the caller may act for; null if there is none. Variant A: any merchant of
-- the tenant. Variant B: the caller's own merchants, and those that list the caller as a delegate.
create or replace function rules.find_merchant(p_call core.call, p_external_id text) returns int
language plpgsql stable as $$
declare
  v_merchant  core.merchant;
begin
  select m.* into v_merchant
  from core.merchant m
  where m.tenant_id = p_call.tenant_id and m.external_id = p_external_id;
  if rules.may_act_for(p_call, v_merchant.merchant_id, v_merchant.party_id) then
    return v_merchant.merchant_id;
  end if;
  return null;
end
$$;

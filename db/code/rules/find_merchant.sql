-- The merchant when the caller may act for it, else nothing. Variant A: every merchant of the tenant.
-- Variant B: those of the calling party, and those that list it as a delegate.
create or replace function rules.find_merchant(p_call core.call, p_external_id text) returns int
language sql stable
begin atomic
  select m.merchant_id
  from core.merchant m
  where m.tenant_id = p_call.tenant_id
    and m.external_id = p_external_id
    and rules.may_act_for(p_call, m.merchant_id, m.party_id);
end;
comment on function rules.find_merchant(core.call, text) is 'Key of a merchant that the caller may act for.';

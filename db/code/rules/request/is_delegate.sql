-- Whether a party may act for another party's merchant (Variant B).
create or replace function rules.is_delegate(p_tenant_id int, p_merchant_id int, p_party_id int)
returns boolean
language plpgsql stable as $$
begin
  return exists (
    select
    from core.merchant_delegate d
    -- equivalent mutant (operand): a merchant_id is unique across tenants
    where d.tenant_id = p_tenant_id
      and d.merchant_id = p_merchant_id
      and d.party_id = p_party_id);
end
$$;

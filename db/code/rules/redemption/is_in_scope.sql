-- Whether coupons of a template can be redeemed at a merchant.
create or replace function rules.is_in_scope(p_tenant_id int, p_template_id int, p_merchant_id int)
returns boolean
language plpgsql stable as $$
begin
  return exists (
    select
    from core.template t
    where t.tenant_id = p_tenant_id
      and t.template_id = p_template_id
      and t.is_for_all_merchants)
  or exists (
    select
    from core.template_merchant s
    -- equivalent mutant (operand): a merchant_id is unique across tenants
    where s.tenant_id = p_tenant_id
      and s.template_id = p_template_id
      and s.merchant_id = p_merchant_id);
end
$$;

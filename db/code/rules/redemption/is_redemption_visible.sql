-- Whether the caller may see a redemption: it may act for its merchant.
create or replace function rules.is_redemption_visible(p_call core.call, p_redemption_id uuid)
returns boolean
language plpgsql stable as $$
begin
  return exists (
    select
    from core.redemption r
    join core.merchant m on m.tenant_id = r.tenant_id and m.merchant_id = r.merchant_id
    where r.tenant_id = p_call.tenant_id
      and r.redemption_id = p_redemption_id
      and rules.may_act_for(p_call, m.merchant_id, m.party_id));
end
$$;

-- Returns the keys of a merchant and a party of the same tenant.
create or replace function rules.find_delegate_for_patch(
  p_tenant text, p_merchant text, p_party text,
  out tenant_id int, out merchant_id int, out party_id int)
language plpgsql stable as $$
begin
  select m.tenant_id, m.merchant_id, p.party_id into tenant_id, merchant_id, party_id
  from core.tenant t
  join core.merchant m on m.tenant_id = t.tenant_id and m.external_id = p_merchant
  join core.party p on p.tenant_id = t.tenant_id and p.external_id = p_party
  where t.external_id = p_tenant;
  if not found then
    raise exception 'tenant % has no merchant % or no party %', p_tenant, p_merchant, p_party
      using errcode = 'CP404';
  end if;
end
$$;

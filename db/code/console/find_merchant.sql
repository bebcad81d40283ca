-- The internal keys of a merchant: with them, its list is read in order.
create or replace function console.find_merchant(
  p_tenant text, p_merchant text, out tenant_id int, out merchant_id int)
returns record
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  select m.tenant_id, m.merchant_id into find_merchant.tenant_id, find_merchant.merchant_id
  from core.tenant t
  join core.merchant m on m.tenant_id = t.tenant_id
  where t.external_id = p_tenant and m.external_id = p_merchant;
end
$$;

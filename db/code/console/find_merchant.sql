-- The internal key of a merchant: with it, its list is read in order.
create or replace function console.find_merchant(p_tenant text, p_merchant text) returns int
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return (
    select m.merchant_id
    from core.tenant t
    join core.merchant m on m.tenant_id = t.tenant_id
    where t.external_id = p_tenant and m.external_id = p_merchant);
end
$$;

-- console.find_merchant of the company's tenant only.
create or replace function portal.find_merchant(
  p_tenant text, p_merchant text, out tenant_id int, out merchant_id int)
returns record
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select m.tenant_id, m.merchant_id
  from console.find_merchant(p_tenant, p_merchant) m
  where p_tenant = portal.find_tenant();
end;

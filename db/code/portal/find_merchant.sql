-- console.find_merchant of the company's tenant only.
create or replace function portal.find_merchant(p_tenant text, p_merchant text) returns int
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select console.find_merchant(p_tenant, p_merchant) where p_tenant = portal.find_tenant();
end;

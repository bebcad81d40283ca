-- console.find_coupons of the company's tenant only.
create or replace function portal.find_coupons(p_lookup_hash uuid)
returns table (tenant text, coupon text)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select c.tenant, c.coupon
  from console.find_coupons(p_lookup_hash) c
  where c.tenant = portal.find_tenant();
end;

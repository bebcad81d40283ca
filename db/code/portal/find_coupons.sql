-- console.find_coupons of the coupons that the company may see.
create or replace function portal.find_coupons(p_lookup_hash uuid)
returns table (tenant text, coupon text)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select c.tenant, c.coupon
  from console.find_coupons(p_lookup_hash) c
  where exists (select from portal.find_coupon(c.coupon) f where f.tenant = c.tenant);
end;

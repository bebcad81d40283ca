-- The coupon with this ID, if the company may see it.
create or replace function portal.find_coupon(p_id text) returns setof portal.coupon
language sql stable
begin atomic
  select c.* from portal.coupon c where c.coupon_key = rules.parse_id('cpn', p_id);
end;

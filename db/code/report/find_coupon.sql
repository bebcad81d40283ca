create or replace function report.find_coupon(p_id text) returns setof report.coupon
language sql stable
begin atomic
  select c.* from report.coupon c where c.coupon_key = rules.parse_id('cpn', p_id);
end;
comment on function report.find_coupon(text) is 'The coupon with this ID, cpn_….';

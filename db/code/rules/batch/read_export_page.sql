-- Coupons of a batch after number p_after, in order, for an export of its codes. lookup_hash lets
-- the program that derives the codes check that it has the right key. Nothing here is secret: codes
-- cannot be derived without the batch's salt, which only api.export_codes and admin.open_export
-- give out.
create or replace function rules.read_export_page(
  p_tenant_id int, p_batch_id int, p_after int, p_limit int,
  out number int, out code_attempt smallint, out lookup_hash uuid, out coupon_id text)
returns setof record
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select c.number, c.code_attempt, c.lookup_hash, rules.format_id('cpn', c.coupon_id)
  from core.coupon c
  where c.tenant_id = p_tenant_id and c.batch_id = p_batch_id and c.number > p_after
  order by c.number
  limit p_limit;
end;

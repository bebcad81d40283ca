-- report.find_refusals of the company's own calls.
create or replace function portal.find_refusals(
  p_coupon text, p_limit int,
  out recorded_at timestamptz, out operation text, out code text, out tenant text,
  out caller text, out merchant text, out store text, out request_id text)
returns setof record
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select f.*
  from report.find_refusals(p_coupon, 10000) f
  where f.tenant = (select portal.find_tenant())
    and coalesce(f.caller, '*') = (select portal.find_party())
  order by f.recorded_at desc
  limit p_limit;
end;

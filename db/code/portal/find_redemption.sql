-- report.find_redemption of what the company may see.
create or replace function portal.find_redemption(p_id text)
returns setof report.redemption
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select f.*
  from report.find_redemption(p_id) f
  where f.tenant = (select portal.find_tenant())
    and ((select portal.find_party()) = '*'
         or f.merchant = any (array(select m.merchant from portal.merchant m)));
end;

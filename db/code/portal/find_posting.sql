-- report.find_posting of the company's statements.
create or replace function portal.find_posting(p_id text)
returns setof report.posting
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select f.*
  from report.find_posting(p_id) f
  where f.tenant = (select portal.find_tenant())
    and ((select portal.find_party()) = '*' or f.distributor = (select portal.find_party()));
end;

-- report.find_event of the events of the company.
create or replace function portal.find_event(p_id text)
returns setof report.event
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select f.*
  from report.find_event(p_id) f
  where f.tenant = (select portal.find_tenant())
    and ((select portal.find_party()) = '*' or f.party = (select portal.find_party()));
end;

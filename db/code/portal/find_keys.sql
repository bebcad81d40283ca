-- report.find_keys of the company's tenant only. It is security definer, because the portal may not
-- ask about others.
create or replace function portal.find_keys(p_id text) returns uuid[]
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select array(
    select r.redemption_id
    from core.redemption r
    where r.redemption_id = any (array(select unnest(report.find_keys(p_id))))
      and r.tenant_id = (select c.tenant_id from portal.find_credential() c));
end;

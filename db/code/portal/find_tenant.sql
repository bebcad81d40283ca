-- The tenant of the company that is signed in, by the sha256 of its cookie in the setting
-- coupon.session. Null, so that no view has a row, if nobody is signed in, or staff.
create or replace function portal.find_tenant() returns text
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select t.external_id
  from core.tenant t
  where t.tenant_id = (select c.tenant_id from portal.find_credential() c);
end;

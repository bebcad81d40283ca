-- The party that is signed in (Variant B). Null in Variant A: the tenant itself is.
create or replace function portal.find_party() returns text
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select p.external_id
  from portal.find_credential() c
  join core.party p on p.tenant_id = c.tenant_id and p.party_id = c.party_id;
end;

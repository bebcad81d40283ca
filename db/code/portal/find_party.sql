-- The party that is signed in (Variant B). In Variant A it is '*': the tenant itself is signed in,
-- and sees what all its parties may. Null if nobody is, also if a session ends within a statement:
-- so no condition of the views may take null for everybody.
create or replace function portal.find_party() returns text
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select coalesce(p.external_id, '*')
  from portal.find_credential() c
  left join core.party p on p.tenant_id = c.tenant_id and p.party_id = c.party_id;
end;

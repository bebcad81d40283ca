create or replace function admin.has_tenants() returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp
return exists (select from core.tenant);
comment on function admin.has_tenants() is 'Whether the database has any tenant yet.';

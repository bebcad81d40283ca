-- The data that the HTTP layer needs to check a signature. No row: the access key is unknown or
-- revoked, or another cell serves its tenant. cell: null without a router, which fills it in.
create or replace function gate.find_credential(
  p_access_key text,
  out tenant_id int, out credential_id int, out variant text, out amount_unit text,
  out sealed_secret bytea, out cell int)
returns setof record
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select c.tenant_id, c.credential_id, t.variant, t.amount_unit, c.sealed_secret, null::int
  from core.credential c
  join core.tenant t on t.tenant_id = c.tenant_id
  where c.access_key = p_access_key and c.revoked_at is null and t.home = core.read_cell();
end;

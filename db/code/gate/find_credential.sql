-- The data that the HTTP layer needs to check a signature. No row: the access key is unknown or
-- revoked, or another cell serves its tenant. A standby, and a database that is no cell now, do not
-- know whose keys are valid.
create or replace function gate.find_credential(
  p_access_key text,
  out tenant_id int, out credential_id int, out variant text, out amount_unit text,
  out sealed_secret bytea)
returns setof record
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_cell  smallint := core.read_cell();
begin
  if v_cell is null then
    raise exception 'the server says that this is cell %, and its database is another one',
      core.read_server_cell()
      using errcode = 'cannot_connect_now';
  elsif pg_is_in_recovery() then
    raise exception 'this is a standby' using errcode = 'cannot_connect_now';
  end if;
  return query
  select c.tenant_id, c.credential_id, t.variant, t.amount_unit, c.sealed_secret
  from core.credential c
  join core.tenant t on t.tenant_id = c.tenant_id
  where c.access_key = p_access_key and c.revoked_at is null and t.home = v_cell;
end
$$;

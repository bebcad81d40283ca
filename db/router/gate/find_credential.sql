-- gate.find_credential of the cell that has the access key: the one where it was found before is
-- asked first. p_skip: cells that the caller knows to be down. If the key is not found and a cell
-- was not asked, this raises an error, because the key may be there.
create or replace function gate.find_credential(
  p_access_key text, p_skip int[] default '{}',
  out tenant_id int, out credential_id int, out variant text, out amount_unit text,
  out sealed_secret bytea, out cell int)
returns setof record
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_known    int := (
    select router.find_cell(k.tenant_id)
    from router.credential k
    where k.access_key = p_access_key);
  v_unasked  int[] := '{}';
  v_row      record;
begin
  for cell in select * from router.list_cells(v_known) loop
    begin
      if cell = any (p_skip) then
        v_unasked := v_unasked || cell;
        continue;
      end if;
      select c.* into v_row from remote.find_credential(cell, p_access_key) c;
      if found then
        tenant_id := v_row.tenant_id;
        credential_id := v_row.credential_id;
        variant := v_row.variant;
        amount_unit := v_row.amount_unit;
        sealed_secret := v_row.sealed_secret;
        perform router.note_credential(p_access_key, tenant_id, cell);
        return next;
        return;
      end if;
    exception when internal_error or cannot_connect_now or admin_shutdown then
      v_unasked := v_unasked || cell;
    end;
  end loop;
  if v_unasked <> '{}' then
    raise exception 'cells that may have the access key cannot be reached: %', v_unasked
      using errcode = 'connection_failure';
  end if;
end
$$;

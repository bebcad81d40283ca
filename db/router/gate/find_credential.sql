-- gate.find_credential of a cell. serve asks all cells, each by itself, so that one that hangs
-- keeps no answer of another back. Refuses the answer of a cell while another one, which this
-- router knows as the home of the tenant, claims it too: one of the two is out of date.
create or replace function gate.find_credential(
  p_cell int, p_access_key text,
  out tenant_id int, out credential_id int, out variant text, out amount_unit text,
  out sealed_secret bytea)
returns setof record
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_known  int;
begin
  for tenant_id, credential_id, variant, amount_unit, sealed_secret in
    select * from remote.find_credential(p_cell, p_access_key)
  loop
    v_known := router.find_cell(tenant_id);
    if v_known <> p_cell then
      if remote.has_tenant(v_known, tenant_id) then
        raise exception 'tenant % lives in cell % and in cell %', tenant_id, v_known, p_cell
          using errcode = 'connection_failure';
      end if;
      perform router.note_home(tenant_id, p_cell);
    end if;
    return next;
  end loop;
end
$$;

-- Forgets a cell in which no tenant lives. p_is_lost: without asking it.
create or replace function router.remove_cell(p_cell int, p_is_lost boolean) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_tenants  int := case when not p_is_lost then cardinality(remote.list_tenants(p_cell)) end;
  v_server   text;
begin
  if v_tenants > 0 then
    raise exception 'cell % has tenants: %', p_cell, v_tenants using errcode = 'CP409';
  end if;
  foreach v_server in array array[router.name_server(p_cell), 'report_' || p_cell] loop
    execute format('drop user mapping if exists for coupon_owner server %I', v_server);
    execute format('drop server if exists %I', v_server);
  end loop;
  delete from router.tenant t where t.cell = p_cell;
end
$$;

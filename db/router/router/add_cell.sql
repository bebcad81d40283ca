-- Adds a cell, or changes how to reach it. p_connection: a connection string of libpq without
-- login. Calls use the new address at once. The server must answer, and be that cell or a standby,
-- which a split may make that cell; else nothing changes. A new cell counts its tenants from the
-- first number of its range, so its number must not be that of a cell whose tenants live elsewhere.
create or replace function router.add_cell(
  p_cell int, p_connection text, p_user text, p_password text)
returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_server  text := router.name_server(p_cell);
  v_login   text := format('user %L', p_user)
    || case when p_password is null then '' else format(', password %L', p_password) end;
  v_found   record;
  v_moved   record;
begin
  if p_cell not between 1 and 999 then
    raise exception 'the number of a cell is 1 to 999' using errcode = 'CP400';
  end if;
  execute format('drop user mapping if exists for coupon_owner server %I', v_server);
  execute format('drop server if exists %I', v_server);
  execute format(
    'create server %I foreign data wrapper cells options (p0 %L)', v_server, p_connection);
  execute format('create user mapping for coupon_owner server %I options (%s)', v_server, v_login);
  select * into v_found from gate.read_cell_version(p_cell);
  if v_found.cell = p_cell and v_found.server_cell = p_cell then
    if v_found.is_read_only or remote.list_tenants(p_cell) <> '{}' then
      return;
    end if;
  elsif not v_found.is_read_only then
    raise exception
      'cell % is not added: its database is cell %, and coupon.cell of its server is %', p_cell,
      v_found.cell, v_found.server_cell using errcode = 'CP409';
  end if;
  select c.cell, t.tenant_id into v_moved
  from router.list_cells() c (cell)
  cross join unnest(remote.list_tenants(c.cell)) t (tenant_id)
  where c.cell <> p_cell and (t.tenant_id - 1) / 1000000 + 1 = p_cell;
  if found then
    raise exception
      'cell % is not added: the number was another cell''s, whose tenant number % lives in cell %',
      p_cell, v_moved.tenant_id, v_moved.cell
      using errcode = 'CP409', hint = 'Take a number that no cell had.';
  end if;
end
$$;

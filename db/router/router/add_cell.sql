-- Adds a cell, or changes how to reach it. p_connection: a connection string of libpq without
-- login. Calls use the new address at once.
create or replace function router.add_cell(
  p_cell int, p_connection text, p_user text, p_password text)
returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_server  text := router.name_server(p_cell);
  v_login   text := format('user %L', p_user)
    || case when p_password is null then '' else format(', password %L', p_password) end;
begin
  if p_cell not between 1 and 999 then
    raise exception 'the number of a cell is 1 to 999' using errcode = 'CP400';
  end if;
  execute format('drop user mapping if exists for coupon_owner server %I', v_server);
  execute format('drop server if exists %I', v_server);
  execute format(
    'create server %I foreign data wrapper cells options (p0 %L)', v_server, p_connection);
  execute format('create user mapping for coupon_owner server %I options (%s)', v_server, v_login);
end
$$;

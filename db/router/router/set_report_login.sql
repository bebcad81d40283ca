-- Says where the reports of a cell are read. A function, so that no log has the statement with the
-- password.
create or replace function router.set_report_login(p_cell int, p_place jsonb, p_login jsonb)
returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_server  text := 'report_' || p_cell;
begin
  execute format('drop user mapping if exists for coupon_owner server %I', v_server);
  execute format('drop server if exists %I', v_server);
  execute format(
    'create server %I foreign data wrapper postgres_fdw options (%s)', v_server,
    (select string_agg(format('%I %L', o.key, o.value), ', ') from jsonb_each_text(p_place) o));
  execute format('alter server %I owner to coupon_owner', v_server);
  execute format(
    'create user mapping for coupon_owner server %I options (%s)', v_server,
    (select string_agg(format('%I %L', o.key, o.value), ', ') from jsonb_each_text(p_login) o));
end
$$;

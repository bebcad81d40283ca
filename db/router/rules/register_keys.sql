-- rules.register_keys of every cell that can be reached, if there is one.
create or replace function rules.register_keys(p_keys jsonb, out version text, out problem text)
returns setof record
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_cell        int;
  v_is_reached  boolean := false;
  v_message     text := 'the router has no cell';
begin
  for v_cell in select * from router.list_cells() loop
    begin
      return query select k.version, k.problem from remote.register_keys(v_cell, p_keys) k;
      v_is_reached := true;
    exception when internal_error or cannot_connect_now or admin_shutdown then
      get stacked diagnostics v_message = message_text;
    end;
  end loop;
  if not v_is_reached then
    raise exception '%', v_message using errcode = 'connection_failure';
  end if;
end
$$;

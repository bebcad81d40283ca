-- Asks the cells where a tenant lives, the one that this router knows first, and notes the answer.
-- home is null if it is none of those that answer. is_new: it is another one than this router knew.
-- serve asks this when a cell cannot be reached or does not serve the tenant. A cell is left out if
-- it fails twice: the first time, the connection may have been one from before it restarted.
create or replace function gate.find_home(p_tenant_id int, out home int, out is_new boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_known  int := router.find_cell(p_tenant_id);
  v_cell   int;
  v_asked  int[] := '{}';
begin
  is_new := false;
  for v_cell in
    select c.cell
    from router.list_cells(v_known) with ordinality c (cell, turn)
    cross join generate_series(1, 2) t (attempt)
    order by c.turn, t.attempt
  loop
    continue when v_cell = any (v_asked);
    begin
      if remote.has_tenant(v_cell, p_tenant_id) then
        perform router.note_home(p_tenant_id, v_cell);
        home := v_cell;
        is_new := v_cell <> v_known;
        return;
      end if;
      v_asked := v_asked || v_cell;
    exception when internal_error or cannot_connect_now or admin_shutdown then
      continue;
    end;
  end loop;
end
$$;

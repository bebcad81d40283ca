-- Asks the cells where a tenant lives, the one that this router knows first, and notes the answer.
-- Returns whether it is another cell than before. A cell is left out if it fails twice: the first
-- time, the connection may have been one from before a restart of the cell.
create or replace function router.find_home(p_tenant_id int) returns boolean
language plpgsql volatile as $$
declare
  v_known  text := router.find_server(p_tenant_id);
  v_cell   int;
  v_asked  int[] := '{}';
begin
  for v_cell in
    select c.cell
    from router.list_cells(substring(v_known from '[0-9]+')::int) with ordinality c (cell, turn)
    cross join generate_series(1, 2) t (attempt)
    order by c.turn, t.attempt
  loop
    continue when v_cell = any (v_asked);
    begin
      if remote.has_tenant(v_cell, p_tenant_id) then
        perform router.note_home(p_tenant_id, v_cell);
        return router.name_server(v_cell) <> v_known;
      end if;
      v_asked := v_asked || v_cell;
    exception when internal_error or cannot_connect_now or admin_shutdown then
      continue;
    end;
  end loop;
  return false;
end
$$;

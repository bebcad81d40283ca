-- The cells behind this router. A cell has the same function, which returns none.
create or replace function gate.list_cells() returns setof int
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select c from router.list_cells() c;
end;

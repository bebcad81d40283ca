-- The cells of this router and how to reach them, as connection strings of libpq without login.
-- Commands connect to a cell with their own login.
create or replace function router.list_connections(out cell int, out connection text)
returns setof record
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select c.cell, o.option_value
  from router.list_cells() c (cell)
  join pg_foreign_server s on s.srvname = router.name_server(c.cell)
  cross join lateral pg_options_to_table(s.srvoptions) o
  where o.option_name = 'p0'
  order by 1;
end;

-- The cells of this router and where they are.
create or replace function router.list_addresses(out cell int, out address text)
returns setof record
language sql stable
begin atomic
  select c.cell,
         format(
           '%s:%s/%s',
           substring(o.option_value from $r$host='([^']*)'$r$),
           substring(o.option_value from $r$port='([^']*)'$r$),
           substring(o.option_value from $r$dbname='([^']*)'$r$))
  from router.list_cells() c (cell)
  join pg_foreign_server s on s.srvname = router.name_server(c.cell)
  cross join lateral pg_options_to_table(s.srvoptions) o
  where o.option_name = 'p0'
  order by 1;
end;

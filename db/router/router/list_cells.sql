-- The cells of this router, p_first before the others.
create or replace function router.list_cells(p_first int default null) returns setof int
language sql stable
begin atomic
  select substring(s.srvname from '^cell_([0-9]+)$')::int as cell
  from pg_foreign_server s
  join pg_foreign_data_wrapper w on w.oid = s.srvfdw
  where w.fdwname = 'cells'
  order by s.srvname <> 'cell_' || coalesce(p_first, 0), 1;
end;

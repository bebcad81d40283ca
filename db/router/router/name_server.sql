-- The server of a cell: see pg_foreign_server for its address.
create or replace function router.name_server(p_cell int) returns text
language sql immutable
return 'cell_' || p_cell;

-- The version of this database, for the start of programs and for /readyz. migration: the newest
-- one. code: the hash of the loaded functions and, after a space, of the previous version, whose
-- programs can still run. cell: the number of the cell that the database is; server_cell: the one
-- that its server says.
create or replace function rules.read_version(
  out migration text, out code text, out cell int, out server_cell int)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select (select max(m.name) from core.migration m),
         (select string_agg(v.sha256, ' ' order by v.is_current desc) from core.code_version v),
         (select c.number from core.cell c),
         core.read_server_cell();
end;

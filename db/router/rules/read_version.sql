-- The version that made this router. That of a cell: gate.read_cell_version.
create or replace function rules.read_version(
  out migration text, out code text, out cell int, out server_cell int)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select (select v.migration from router.version v where v.is_current),
         (select string_agg(v.code, ' ' order by v.is_current desc) from router.version v),
         null::int, null::int;
end;

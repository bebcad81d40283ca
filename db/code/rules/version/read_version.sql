-- The version of this database, for the start of programs and for /readyz. migration: the newest
-- one. code: the hash of the loaded functions and, after a space, of the previous version, whose
-- programs can still run.
create or replace function rules.read_version(out migration text, out code text)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select (select max(m.name) from core.migration m),
         (select string_agg(v.sha256, ' ' order by v.is_current desc) from core.code_version v);
end;

-- The version of this database, for /readyz: the newest migration and the loaded code. After a
-- space follows the code of the version before: its programs still find everything that they call.
create or replace function gate.read_version(out migration text, out code text)
language sql stable security definer
begin atomic
  select (select max(m.name) from core.migration m),
         (select string_agg(v.sha256, ' ' order by v.is_current desc) from core.code_version v);
end;
comment on function gate.read_version() is
  'The newest migration, and the sha256 of the loaded code and of the code before it.';

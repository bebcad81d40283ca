-- What this database is at, for /readyz: the newest migration, and the code that is loaded; behind it, after a space, the
-- code of the version before, whose programs still find all that they call.
create or replace function gate.read_version(out migration text, out code text)
language sql stable security definer
begin atomic
  select (select max(m.name) from core.migration m),
         (select string_agg(v.sha256, ' ' order by v.is_current desc) from core.code_version v);
end;
comment on function gate.read_version() is 'Newest migration, and sha256 of the loaded code and of the one before.';

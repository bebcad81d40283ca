-- What this database is at, for /readyz: the newest migration and the loaded code.
create or replace function gate.version(out migration text, out code text)
language sql stable security definer
begin atomic
  select (select max(m.name) from core.migration m), (select v.sha256 from core.code_version v);
end;
comment on function gate.version() is 'Newest migration, and sha256 of the loaded code.';

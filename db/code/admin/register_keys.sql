-- Each command that uses keys calls this first. p_keys maps each version of the
-- master key to the hex of its fingerprint.
create or replace function admin.register_keys(p_keys jsonb, out version text, out problem text)
returns setof record
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  select r.version, r.problem from rules.register_keys(p_keys) r;
end;
comment on function admin.register_keys(jsonb) is
  'Registers new versions of the master key and returns the problems of a program''s keys.';

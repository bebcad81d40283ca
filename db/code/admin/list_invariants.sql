create or replace function admin.list_invariants(
  out invariant text, out broken_rows bigint, out checked_at timestamptz)
returns setof record
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select i.invariant, i.broken_rows, i.checked_at from rules.list_invariants() i;
end;
comment on function admin.list_invariants() is
  'The invariants with the result of their last check, the oldest check first. Null: never '
  'checked.';

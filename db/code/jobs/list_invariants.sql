-- The invariants with their last check, the oldest check first. Null: never checked.
create or replace function jobs.list_invariants(
  out invariant text, out broken_rows bigint, out checked_at timestamptz)
returns setof record
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select i.invariant, i.broken_rows, i.checked_at from rules.list_invariants() i;
end;

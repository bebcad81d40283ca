-- The invariants with their last check; null: never checked. Those that were checked longest ago
-- come first, so a check that is interrupted again and again reaches all of them.
create or replace function rules.list_invariants(
  out invariant text, out broken_rows bigint, out checked_at timestamptz)
returns setof record
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return query
  select k.invariant, c.broken_rows, c.checked_at
  from rules.known_invariant k
  left join core.invariant_check c on c.invariant = k.invariant
  order by c.checked_at nulls first, k.invariant;
end
$$;

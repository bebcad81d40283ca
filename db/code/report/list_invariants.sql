create or replace function report.list_invariants(
  out invariant text, out broken_rows bigint, out example text, out checked_at timestamptz,
  out description text)
returns setof record
language plpgsql stable security definer rows 50 set search_path = pg_catalog, pg_temp as $$
begin
  return query
  select k.invariant, c.broken_rows, c.example, c.checked_at, k.description
  from rules.known_invariant k
  left join core.invariant_check c on c.invariant = k.invariant
  order by c.broken_rows desc nulls first, k.invariant;
end
$$;
comment on function report.list_invariants() is
  'The invariants: what breaks each, and what its last check found. Null: never checked. Checks '
  'nothing itself.';

create or replace function admin.check_invariant(
  p_invariant text, out broken_rows bigint, out example text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_custom_plan as $$
begin
  select i.broken_rows, i.example into broken_rows, example
  from rules.check_invariant(p_invariant) i;
end
$$;
comment on function admin.check_invariant(text) is
  'Checks one invariant of report.invariants now, and records the result for the metrics. Returns '
  'how many rows break it, and one of them.';

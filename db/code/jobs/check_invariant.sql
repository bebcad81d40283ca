-- Checks one invariant, and records and returns how many rows break it, and one of them. It reads
-- whole tables, but only those of this invariant.
create or replace function jobs.check_invariant(
  p_invariant text, out broken_rows bigint, out example text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_custom_plan as $$
begin
  select i.broken_rows, i.example into broken_rows, example
  from rules.check_invariant(p_invariant) i;
end
$$;

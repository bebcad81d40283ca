-- Checks one invariant, and records and returns how many rows break it, and one of them. With a
-- custom plan, the planner knows the invariant and drops all others from the view.
create or replace function rules.check_invariant(
  p_invariant text, out broken_rows bigint, out example text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_custom_plan as $$
begin
  if not exists (select from rules.known_invariant k where k.invariant = p_invariant) then
    raise exception 'there is no invariant "%"', p_invariant using errcode = 'CP404';
  end if;
  select count(*), min(concat_ws(' ', i.tenant, i.subject)) into broken_rows, example
  from report.invariants i
  where i.invariant = p_invariant;
  insert into core.invariant_check as c (invariant, broken_rows, example, checked_at)
  values (p_invariant, check_invariant.broken_rows, check_invariant.example, clock_timestamp())
  on conflict (invariant) do update
  set broken_rows = excluded.broken_rows, example = excluded.example,
      checked_at = excluded.checked_at;
end
$$;

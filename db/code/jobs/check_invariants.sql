-- The nightly self-check: counts the violations of each invariant and names one of them. Normally
-- returns no rows.
create or replace function jobs.check_invariants(
  out invariant text, out count bigint, out example text)
returns setof record
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  select i.invariant, count(*), min(i.tenant || ' ' || i.subject)
  from report.invariants i
  group by i.invariant;
end;

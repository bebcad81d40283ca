-- Deletes rows of core.delivery_attempt older than p_days, at most p_limit. Returns how many.
--
-- Uses now(), because clock_timestamp() is volatile and cannot bound an index scan. Sequential
-- scans are off: with a limit they look cheap to the planner, but read the whole table when no row
-- is old enough.
create or replace function jobs.prune_attempts(p_days int, p_limit int) returns int
language sql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off
begin atomic
  select rules.check_retention(p_days);
  with removed as (
    delete from core.delivery_attempt r
    where r.ctid = any (array(
      select o.ctid
      from core.delivery_attempt o
      where o.attempted_at < now() - make_interval(days => p_days)
      limit p_limit
      for update skip locked))
    returning 1)
  select count(*)::int from removed;
end;
comment on function jobs.prune_attempts(int, int) is
  'Deletes old rows of core.delivery_attempt; returns how many.';

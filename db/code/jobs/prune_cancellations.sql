-- Deletes rows of core.lock_cancellation older than p_days, at most p_limit. Returns how many.
-- jobs.prune_attempts explains now() and the missing sequential scan.
create or replace function jobs.prune_cancellations(p_days int, p_limit int) returns int
language sql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off
begin atomic
  select rules.check_retention(p_days);
  with removed as (
    delete from core.lock_cancellation r
    where r.ctid = any (array(
      select o.ctid
      from core.lock_cancellation o
      where o.recorded_at < now() - make_interval(days => p_days)
      limit p_limit
      for update skip locked))
    returning 1)
  select count(*)::int from removed;
end;
comment on function jobs.prune_cancellations(int, int) is
  'Deletes old rows of core.lock_cancellation; returns how many.';

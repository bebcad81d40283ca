-- Deletes rows of core.lock_cancellation older than p_days from the blocks p_from to p_to - 1 of
-- the table, at most p_limit. Returns how many, or null if the table ends before p_from.
-- jobs.prune_attempts explains the blocks and now().
create or replace function jobs.prune_cancellations(
  p_days int, p_limit int, p_from bigint, p_to bigint
) returns int
language sql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off
begin atomic
  select rules.check_retention(p_days);
  with removed as (
    delete from core.lock_cancellation r
    where r.ctid = any (array(
      select o.ctid
      from core.lock_cancellation o
      where o.ctid >= rules.find_start_of_block(p_from)
        and o.ctid < rules.find_start_of_block(p_to)
        and o.recorded_at < now() - make_interval(days => p_days)
      limit p_limit
      for update skip locked))
    returning 1)
  select case when rules.has_block('core.lock_cancellation', p_from) then count(*)::int end
  from removed;
end;

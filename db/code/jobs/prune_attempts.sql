-- Deletes rows of core.delivery_attempt older than p_days from the blocks p_from to p_to - 1 of the
-- table, at most p_limit. Returns how many, or null if the table ends before p_from.
--
-- The whole table is read once a day, in parts of a fixed size, because no index finds old rows at
-- a constant cost. New rows take the space of deleted ones, so after one retention each range of a
-- BRIN index has held an old row. A btree begins with the entries of rows that are deleted but not
-- yet vacuumed. The settings make the planner choose a scan of these blocks.
--
-- Uses now(), because clock_timestamp() is volatile and would run for each row.
create or replace function jobs.prune_attempts(p_days int, p_limit int, p_from bigint, p_to bigint)
returns int
language sql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off
begin atomic
  select rules.check_retention(p_days);
  with removed as (
    delete from core.delivery_attempt r
    where r.ctid = any (array(
      select o.ctid
      from core.delivery_attempt o
      where o.ctid >= rules.find_start_of_block(p_from)
        and o.ctid < rules.find_start_of_block(p_to)
        and o.attempted_at < now() - make_interval(days => p_days)
      limit p_limit
      for update skip locked))
    returning 1)
  select case when rules.has_block('core.delivery_attempt', p_from) then count(*)::int end
  from removed;
end;

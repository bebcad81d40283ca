-- Removes rows of core.feed_event older than p_days, at most p_limit. Gives how many.
create or replace function jobs.prune_feed(p_days int, p_limit int) returns int
language sql volatile security definer
begin atomic
  with removed as (
    delete from core.feed_event r
    where r.ctid = any (array(
      select o.ctid
      from core.feed_event o
      where o.sequenced_at < clock_timestamp() - make_interval(days => p_days)
      limit p_limit
      for update skip locked))
    returning 1)
  select count(*)::int from removed;
end;
comment on function jobs.prune_feed(int, int) is 'Removes old rows of core.feed_event.';

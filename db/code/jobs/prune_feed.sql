-- Deletes events older than p_days from the feeds, at most p_limit. Returns how many.
--
-- Deletes from the front of each feed and stops at the first newer event, so the remaining
-- positions have no gap. (If the clock was set back, times are not in the order of positions.)
create or replace function jobs.prune_feed(p_days int, p_limit int) returns int
language sql volatile security definer
begin atomic
  select rules.check_retention(p_days);
  with heads as (
    select f.tenant_id, f.party_id, h.position
    from core.feed f
    cross join lateral (
      select x.position, x.sequenced_at
      from core.feed_event x
      where x.tenant_id = f.tenant_id and x.party_id = f.party_id
      order by x.position
      limit 1) h
    where h.sequenced_at < now() - make_interval(days => p_days)
    limit p_limit),
  front as (
    select x.tenant_id, x.party_id, x.position,
           bool_and(x.sequenced_at < now() - make_interval(days => p_days))
             over (partition by x.tenant_id, x.party_id order by x.position) as is_old
    from heads h
    join core.feed_event x
      on x.tenant_id = h.tenant_id
     and x.party_id = h.party_id
     and x.position >= h.position
     and x.position < h.position + p_limit / (select count(*) from heads)),
  removed as (
    delete from core.feed_event x
    using front f
    where f.is_old
      and x.tenant_id = f.tenant_id
      and x.party_id = f.party_id
      and x.position = f.position
    returning 1)
  select count(*)::int from removed;
end;
comment on function jobs.prune_feed(int, int) is
  'Deletes old events from the front of the feeds; returns how many.';

-- Deletes pages older than p_days from the feeds, at most p_limit. Returns how many.
--
-- Deletes from the front of each feed and stops at the first newer page, so the remaining positions
-- have no gap. (If the clock was set back, times are not in the order of positions.)
create or replace function jobs.prune_feed(p_days int, p_limit int) returns int
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  select rules.check_retention(p_days);
  with heads as (
    select f.tenant_id, f.party_id, h.first_position
    from core.feed f
    cross join lateral (
      select p.first_position, p.sequenced_at
      from core.feed_page p
      where p.tenant_id = f.tenant_id and p.party_id = f.party_id
      order by p.first_position
      limit 1) h
    -- equivalent mutant (function): each event is asked again, by now()
    where h.sequenced_at < now() - make_interval(days => p_days)
    limit p_limit),
  front as (
    select x.tenant_id, x.party_id, x.first_position,
           bool_and(x.sequenced_at < now() - make_interval(days => p_days))
             over (partition by x.tenant_id, x.party_id order by x.first_position) as is_old
    from heads h
    cross join lateral (
      select p.tenant_id, p.party_id, p.first_position, p.sequenced_at
      from core.feed_page p
      where p.tenant_id = h.tenant_id and p.party_id = h.party_id
      order by p.first_position
      limit p_limit / (select count(*) from heads)) x),
  removed as (
    delete from core.feed_page p
    using front f
    where f.is_old
      and p.tenant_id = f.tenant_id
      and p.party_id = f.party_id
      and p.first_position = f.first_position
    returning 1)
  select count(*)::int from removed;
end;

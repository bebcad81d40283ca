-- How fast and how surely does each subscriber take its webhooks? The last 7 days.
-- The times of requests are in milliseconds. p95_seconds is from the event to the attempt that was
-- accepted, waits and retries included. Test events do not count. parked counts those of now.
with attempt as (
  select a.tenant, a.party, a.duration_ms,
         coalesce(a.http_status between 200 and 299, false) as is_accepted,
         extract(epoch from a.attempted_at - e.recorded_at)::float8 as seconds
  from report.delivery_attempt a
  -- limit 1: the planner looks up each event, and does not read the whole table
  cross join lateral (
    select e.recorded_at
    from report.event e
    where e.tenant_id = a.tenant_id and e.event_key = a.event_key
    limit 1) e
  where a.attempted_at >= current_date - 7
    and a.tenant in (select tenant from report.tenant where not is_sandbox))
select a.tenant, a.party, count(*) as attempts,
       count(*) filter (where not a.is_accepted) as failures,
       round(100.0 * count(*) filter (where not a.is_accepted) / count(*), 1) as percent_failed,
       percentile_disc(0.5) within group (order by a.duration_ms) as median_ms,
       percentile_disc(0.95) within group (order by a.duration_ms) as p95_ms,
       round((percentile_cont(0.95) within group (order by a.seconds)
         filter (where a.is_accepted))::numeric, 1) as p95_seconds,
       (select count(*)
        from report.delivery d
        where d.tenant = a.tenant and d.party = a.party and d.status = 'PARKED') as parked
from attempt a
group by a.tenant, a.party
order by percent_failed desc, a.tenant, a.party;

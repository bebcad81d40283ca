create or replace view report.webhook_health as
select t.external_id as tenant, p.external_id as party, w.url,
       case when w.disabled_at is not null then 'disabled'
            when w.paused_until > clock_timestamp() then 'paused'
            when d.failing > 0 then 'failing'
            else 'healthy' end as health,
       d.waiting, d.failing, d.parked, d.oldest_waiting_at,
       w.disabled_at, w.paused_until, w.rotated_at,
       a.attempts_24h, a.failures_24h, a.p95_ms_24h, a.last_attempt_at
from core.webhook w
join core.tenant t using (tenant_id)
join core.party p using (tenant_id, party_id)
cross join lateral (
  select count(*) filter (where x.parked_at is null) as waiting,
         count(*) filter (where x.parked_at is null and x.attempt_count > 0) as failing,
         count(*) filter (where x.parked_at is not null) as parked,
         min(e.recorded_at) filter (where x.parked_at is null) as oldest_waiting_at
  from core.delivery x
  join core.event e on e.tenant_id = x.tenant_id and e.event_id = x.event_id
  where x.tenant_id = w.tenant_id and x.party_id = w.party_id) d
cross join lateral (
  select count(*) as attempts_24h,
         count(*) filter (
           where x.http_status is null or x.http_status not between 200 and 299) as failures_24h,
         percentile_cont(0.95) within group (order by x.duration_ms) as p95_ms_24h,
         max(x.attempted_at) as last_attempt_at
  from core.delivery_attempt x
  where x.tenant_id = w.tenant_id and x.party_id = w.party_id
    and x.attempted_at > clock_timestamp() - interval '24 hours') a;
comment on view report.webhook_health is 'Webhook delivery health of each subscriber.';

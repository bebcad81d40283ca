create or replace view report.webhook_health as
select t.external_id as tenant, p.external_id as party, rules.format_url_host(w.url) as url,
       case when w.disabled_at is not null then 'disabled'
            when w.paused_until > clock_timestamp() then 'paused'
            when d.failing > 0 then 'failing'
            else 'healthy' end as health,
       d.waiting, d.failing, d.parked, d.oldest_waiting_at,
       w.disabled_at, w.paused_until, w.rotated_at,
       a.attempts_24h, a.failures_24h, a.p95_ms_24h, a.last_attempt_at,
       f.last_failure_at, f.last_error, w.expand, w.event_types
from core.webhook w
join core.tenant t using (tenant_id)
join core.party p using (tenant_id, party_id)
cross join lateral (
  select count(*) filter (where x.parked_at is null) as waiting,
         count(*) filter (where x.parked_at is null and x.attempt_count > 0) as failing,
         count(*) filter (where x.parked_at is not null) as parked,
         min(e.recorded_at) filter (where x.parked_at is null) as oldest_waiting_at
  from core.delivery x
  join rules.event e on e.tenant_id = x.tenant_id and e.event_id = x.event_id
  where x.tenant_id = w.tenant_id and x.party_id = w.party_id) d
cross join lateral (
  select count(*) as attempts_24h,
         count(*) filter (
           where x.http_status is null or x.http_status not between 200 and 299) as failures_24h,
         percentile_cont(0.95) within group (order by x.duration_ms) as p95_ms_24h,
         max(x.attempted_at) as last_attempt_at
  from core.delivery_attempt x
  where x.tenant_id = w.tenant_id and x.party_id = w.party_id
    and x.attempted_at > clock_timestamp() - interval '24 hours') a
left join lateral (
  select x.attempted_at as last_failure_at,
         coalesce(x.error, 'HTTP ' || x.http_status) as last_error
  from core.delivery_attempt x
  where x.tenant_id = w.tenant_id and x.party_id = w.party_id
    and (x.http_status is null or x.http_status not between 200 and 299)
  order by x.attempted_at desc
  limit 1) f on true;
comment on view report.webhook_health is '@primaryKey tenant,party
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,party) references report.party (tenant,party)
Webhook delivery health of each subscriber.';
comment on column report.webhook_health.tenant is 'External ID, ten_….';
comment on column report.webhook_health.party is 'External ID of the subscriber, pty_….';
comment on column report.webhook_health.url is
  'Where deliveries are sent: scheme and host. The rest may hold a token, so only '
  'admin.list_webhooks shows it.';
comment on column report.webhook_health.health is
  'disabled; paused (the subscriber asked for it); failing (a delivery waits for its next '
  'attempt); healthy.';
comment on column report.webhook_health.waiting is
  'Deliveries that are not accepted yet and not parked.';
comment on column report.webhook_health.failing is
  'Those of waiting that have failed at least once.';
comment on column report.webhook_health.parked is
  'Deliveries that were given up after the last attempt; they can be replayed.';
comment on column report.webhook_health.oldest_waiting_at is
  'When the oldest waiting event was recorded. Null: no event waits.';
comment on column report.webhook_health.disabled_at is
  'When deliveries to this webhook stopped. Null: it is enabled.';
comment on column report.webhook_health.paused_until is
  'The receiver''s Retry-After asked for no deliveries before this time. Null: it never asked.';
comment on column report.webhook_health.rotated_at is
  'When the secret was last replaced. The old one also signs for 24 hours after that. Null: it was '
  'never replaced.';
comment on column report.webhook_health.attempts_24h is
  'Attempts in the last 24 hours, including those of test events.';
comment on column report.webhook_health.failures_24h is
  'Attempts in the last 24 hours that got no 2xx answer.';
comment on column report.webhook_health.p95_ms_24h is
  '95 % of the attempts of the last 24 hours took at most so many ms. Null: none.';
comment on column report.webhook_health.last_attempt_at is
  'Of the last 24 hours. Null: no attempt in that time.';
comment on column report.webhook_health.last_failure_at is
  'When an attempt failed last. Null: none of the last 30 days failed.';
comment on column report.webhook_health.last_error is
  'Why that attempt failed: the reason, or the HTTP status of the answer. Null: as above.';
comment on column report.webhook_health.expand is
  'Whether coupon events are sent with data: amounts, shop and order.';
comment on column report.webhook_health.event_types is
  'The types of events that it takes. Null: all.';

-- Other than report.webhook_health, this reads little however many deliveries wait and however many
-- attempts a day has. It is security definer, because readers of reports call it and may read no
-- table.
create or replace function report.measure_webhooks(
  p_limit int, p_tenant text default null, p_party text default null, out tenant text,
  out party text, out health text, out waiting int, out parked int, out attempts int,
  out failures int, out p50_ms int, out p99_ms int, out last_attempt_at timestamptz)
returns setof record
language plpgsql stable security definer rows 20
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
  return query
  select s.tenant, s.party, s.health, s.waiting, s.parked, a.attempts, a.failures, a.p50_ms,
         a.p99_ms, a.last_attempt_at
  from (
    select t.external_id as tenant, p.external_id as party, w.tenant_id, w.party_id,
           case when w.disabled_at is not null then 'disabled'
                when w.paused_until > clock_timestamp() then 'paused'
                when d.failing > 0 then 'failing'
                else 'healthy' end as health,
           d.waiting, k.parked
    from core.webhook w
    join core.tenant t on t.tenant_id = w.tenant_id
    join core.party p on p.tenant_id = w.tenant_id and p.party_id = w.party_id
    cross join lateral (
      select count(*)::int as waiting, count(*) filter (where x.attempt_count > 0) as failing
      from (
        select y.attempt_count
        from core.delivery y
        where y.tenant_id = w.tenant_id and y.party_id = w.party_id and y.parked_at is null
        limit 10000) x) d
    cross join lateral (
      select count(*)::int as parked
      from (
        select
        from core.delivery y
        where y.tenant_id = w.tenant_id and y.party_id = w.party_id and y.parked_at is not null
        limit 10000) x) k
    where t.external_id = coalesce(p_tenant, t.external_id)
      and p.external_id = coalesce(p_party, p.external_id)
    order by k.parked desc, d.waiting desc, t.external_id, p.external_id
    limit p_limit) s
  cross join lateral (
    select count(*)::int as attempts,
           count(*) filter (
             where x.http_status is null or x.http_status not between 200 and 299)::int as failures,
           percentile_disc(0.5) within group (order by x.duration_ms)::int as p50_ms,
           percentile_disc(0.99) within group (order by x.duration_ms)::int as p99_ms,
           max(x.attempted_at) as last_attempt_at
    from (
      select y.http_status, y.duration_ms, y.attempted_at
      from core.delivery_attempt y
      where y.tenant_id = s.tenant_id and y.party_id = s.party_id
      order by y.attempted_at desc, y.attempt_id desc
      limit 200) x) a
  order by s.parked desc, s.waiting desc, s.tenant, s.party;
end
$$;
comment on function report.measure_webhooks(int, text, text) is
  'The p_limit subscribers with the most parked and waiting deliveries (each counted up to 10,000) '
  'and, of the newest 200 attempts of each, the failures and how long the subscriber took. Those '
  'of one tenant or party, if it is named.';

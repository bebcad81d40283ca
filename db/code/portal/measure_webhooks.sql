-- report.measure_webhooks of the company. Without a session, the tenant has no name that exists.
create or replace function portal.measure_webhooks(p_limit int)
returns table (
  tenant text, party text, health text, waiting int, parked int, attempts int, failures int,
  p50_ms int, p99_ms int, last_attempt_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select m.tenant, m.party, m.health, m.waiting, m.parked, m.attempts, m.failures, m.p50_ms,
         m.p99_ms, m.last_attempt_at
  from report.measure_webhooks(
    p_limit, coalesce(portal.find_tenant(), ''), portal.find_party()) m;
end;

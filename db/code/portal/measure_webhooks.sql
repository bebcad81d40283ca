-- report.measure_webhooks of the company. One row says who is signed in, or there is none.
create or replace function portal.measure_webhooks(p_limit int)
returns table (
  tenant text, party text, health text, waiting int, parked int, attempts int, failures int,
  p50_ms int, p99_ms int, last_attempt_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select m.tenant, m.party, m.health, m.waiting, m.parked, m.attempts, m.failures, m.p50_ms,
         m.p99_ms, m.last_attempt_at
  from portal.find_credential() c
  join core.tenant t on t.tenant_id = c.tenant_id
  left join core.party p on p.tenant_id = c.tenant_id and p.party_id = c.party_id
  cross join lateral report.measure_webhooks(p_limit, t.external_id, p.external_id) m;
end;

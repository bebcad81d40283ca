create or replace view report.delivery_attempt as
select t.external_id as tenant, p.external_id as party, rules.format_id('evt', a.event_id) as event,
       a.attempt, a.http_status, a.error, a.duration_ms, a.attempted_at
from core.delivery_attempt a
join core.tenant t using (tenant_id)
join core.party p using (tenant_id, party_id);
comment on view report.delivery_attempt is 'Attempts of webhook deliveries in the last 30 days.';

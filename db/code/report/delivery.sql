create or replace view report.delivery as
select t.external_id as tenant, p.external_id as party, rules.format_id('evt', d.event_id) as event,
       e.event_type, case when d.parked_at is null then 'WAITING' else 'PARKED' end as status,
       d.attempt_count, d.next_attempt_at, d.parked_at, d.last_error, e.recorded_at::timestamptz
from core.delivery d
join core.tenant t using (tenant_id)
join core.party p using (tenant_id, party_id)
join core.event e using (tenant_id, event_id);
comment on view report.delivery is 'Webhook deliveries that the subscriber has not accepted yet.';

create or replace view report.delivery_attempt as
select t.external_id as tenant, p.external_id as party,
       case when a.test_event_type is null then rules.format_id('evt', a.event_id) end as event,
       a.attempt, a.http_status, a.error, a.duration_ms, a.attempted_at, a.attempt_id,
       case when a.test_event_type is not null then rules.format_id('evt', a.event_id) end
         as test_event,
       a.test_event_type, a.tenant_id,
       case when a.test_event_type is null then a.event_id end as event_key
from core.delivery_attempt a
left join core.tenant t using (tenant_id)
left join core.party p using (tenant_id, party_id);
comment on view report.delivery_attempt is '@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,party) references report.party (tenant,party)
@foreignKey (tenant_id,event_key) references report.event (tenant_id,event_key)
Attempts of webhook deliveries in the last 30 days. Fast: order by attempt_id, which is nearly the
order of attempted_at; a party with a range of attempted_at.';
comment on column report.delivery_attempt.tenant is 'External ID, ten_….';
comment on column report.delivery_attempt.party is 'External ID of the subscriber, pty_….';
comment on column report.delivery_attempt.event is
  'External ID, evt_…; the webhook-id of its deliveries. Null: a test event.';
comment on column report.delivery_attempt.attempt is
  'Counts from 1, and again from 1 after a replay.';
comment on column report.delivery_attempt.http_status is
  'Answer of the subscriber; 2xx is success. Null: no answer, see error.';
comment on column report.delivery_attempt.error is
  'Why there was no usable answer. Null: there was one.';
comment on column report.delivery_attempt.duration_ms is
  'Milliseconds from the start of the attempt to its result.';
comment on column report.delivery_attempt.attempted_at is 'When the result was recorded.';
comment on column report.delivery_attempt.attempt_id is
  'Ascending, with gaps: nearly the order of attempted_at.';
comment on column report.delivery_attempt.test_event is
  'The webhook-id of a test event, evt_…, which is in no other view. Null: a real event.';
comment on column report.delivery_attempt.test_event_type is
  'The type of the test event, for example coupon.redeemed. Null: a real event.';
comment on column report.delivery_attempt.tenant_id is 'Internal key of the tenant.';
comment on column report.delivery_attempt.event_key is 'UUID of event. Null where that is null.';

create or replace view report.delivery as
select t.external_id as tenant, p.external_id as party, rules.format_id('evt', d.event_id) as event,
       e.event_type, case when d.parked_at is null then 'WAITING' else 'PARKED' end as status,
       d.attempt_count, d.next_attempt_at::timestamptz, d.parked_at::timestamptz, d.last_error,
       e.recorded_at::timestamptz, d.tenant_id, d.event_id as event_key, d.is_behind, d.is_expanded
from core.delivery d
join core.tenant t using (tenant_id)
join core.party p using (tenant_id, party_id)
join rules.event e using (tenant_id, event_id);
comment on view report.delivery is '@primaryKey tenant,party,event
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,party) references report.party (tenant,party)
@foreignKey (tenant_id,event_key) references report.event (tenant_id,event_key)
Webhook deliveries that the subscriber has not accepted yet.';
comment on column report.delivery.tenant is 'External ID, ten_….';
comment on column report.delivery.party is 'External ID of the subscriber, pty_….';
comment on column report.delivery.event is 'External ID, evt_…; the webhook-id of its deliveries.';
comment on column report.delivery.event_type is
  'As in the body of the webhook, for example coupon.redeemed.';
comment on column report.delivery.status is
  'WAITING: sent again at next_attempt_at. PARKED: given up until replayed.';
comment on column report.delivery.attempt_count is
  'Failed attempts so far, 0 to 10. The tenth failure parks it.';
comment on column report.delivery.next_attempt_at is
  'Earliest time of the next attempt; without meaning once PARKED.';
comment on column report.delivery.parked_at is 'When it was given up. Null: WAITING.';
comment on column report.delivery.last_error is
  'Reason or HTTP status of the last failure. Null: never tried.';
comment on column report.delivery.recorded_at is 'When the event was recorded.';
comment on column report.delivery.tenant_id is 'Internal key of the tenant.';
comment on column report.delivery.event_key is 'UUID of event, for joins.';
comment on column report.delivery.is_behind is
  'False: it goes first, as redemptions do. True: it goes behind, as expiries, voids and replays '
  'do, with a fifth of the requests while others wait. Deliveries of one coupon wait together.';
comment on column report.delivery.is_expanded is
  'Whether a coupon event is sent with data, as the webhook asked when the delivery was made.';

create or replace view report.event as
select t.external_id as tenant, e.event_seq, rules.format_id('evt', e.event_id) as event,
       e.event_type, p.external_id as party, b.external_id as batch,
       rules.format_id('cpn', e.coupon_id) as coupon,
       rules.format_id('red', case e.event_type
         when 'coupon.redeemed' then e.event_id
         when 'coupon.reversed' then (
           select v.redemption_id
           from core.reversal v
           where v.reversal_id = e.event_id and v.tenant_id = e.tenant_id)
       end) as redemption,
       e.business_date, e.occurred_at::timestamptz, e.recorded_at::timestamptz,
       e.tenant_id, e.event_id as event_key, e.coupon_id as coupon_key,
       case e.event_type
         when 'coupon.redeemed' then e.event_id
         when 'coupon.reversed' then (
           select v.redemption_id
           from core.reversal v
           where v.reversal_id = e.event_id and v.tenant_id = e.tenant_id)
       end as redemption_key
from rules.event e
left join core.tenant t on t.tenant_id = e.tenant_id
left join core.party p on p.tenant_id = e.tenant_id and p.party_id = e.party_id
left join core.batch b on b.batch_id = e.batch_id;
comment on view report.event is '@primaryKey tenant_id,event_key
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,party) references report.party (tenant,party)
@foreignKey (tenant,batch) references report.batch (tenant,batch)
@foreignKey (tenant_id,coupon_key) references report.coupon (tenant_id,coupon_key)
@foreignKey (tenant_id,redemption_key) references report.redemption (tenant_id,redemption_key)
Events and the party that each is for. Fast: order by event_seq, which is nearly the order of
recorded_at; report.find_event(ID), also with the ID of a coupon.';
comment on column report.event.tenant is 'External ID, ten_….';
comment on column report.event.event_seq is
  'In order of writing, with gaps. For one coupon, the order in which things happened.';
comment on column report.event.event is 'External ID, evt_…; the webhook-id of its deliveries.';
comment on column report.event.event_type is
  'As in the body of the webhook, for example coupon.redeemed.';
comment on column report.event.party is 'External ID of the party that is notified, pty_….';
comment on column report.event.batch is
  'External ID, bat_…. Only for events of a whole batch, else null.';
comment on column report.event.coupon is
  'External ID, cpn_…. Null: the event is not about one coupon.';
comment on column report.event.redemption is
  'External ID, red_…, for coupon.redeemed and coupon.reversed. Else null.';
comment on column report.event.business_date is
  'The closed day, only for reconciliation.ready. Else null.';
comment on column report.event.occurred_at is
  'When it took effect. A coupon expires at valid_to, however late the job runs.';
comment on column report.event.recorded_at is
  'When the row was written: for an expiry, when the job ran.';
comment on column report.event.tenant_id is 'Internal key of the tenant.';
comment on column report.event.event_key is
  'UUID of event, for searches: event_key = report.parse_id(''evt_…'').';
comment on column report.event.coupon_key is
  'UUID of coupon, for searches. Null where coupon is null.';
comment on column report.event.redemption_key is 'UUID of redemption. Null where that is null.';

create or replace view report.event as
select t.external_id as tenant, e.event_seq, rules.format_id('evt', e.event_id) as event,
       e.event_type, p.external_id as party, b.external_id as batch,
       rules.format_id('cpn', e.coupon_id) as coupon,
       rules.format_id('red', case e.event_type
         when 'coupon.redeemed' then e.event_id
         else v.redemption_id
       end) as redemption,
       e.business_date, e.occurred_at::timestamptz, e.recorded_at::timestamptz,
       e.tenant_id, e.event_id as event_key, e.coupon_id as coupon_key
from core.event e
join core.tenant t using (tenant_id)
join core.party p using (tenant_id, party_id)
left join core.batch b using (tenant_id, batch_id)
left join core.reversal v on v.tenant_id = e.tenant_id and v.reversal_id = e.event_id;
comment on view report.event is 'Events and the party that each is for.';

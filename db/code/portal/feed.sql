-- The feed of the company, with the position of each event. Newest first is fast: order by
-- page_key, position.
create or replace view portal.feed as
select f.position, e.occurred_at, e.event_type, e.event, e.coupon, e.batch, e.business_date,
       f.first_position as page_key
from rules.feed_event f
left join lateral (
  select x.*
  from report.event x
  where x.event_seq = f.event_seq and x.tenant_id = f.tenant_id
  limit 1) e on true
where f.tenant_id = (select c.tenant_id from portal.find_credential() c)
  and f.party_id = (select coalesce(c.party_id, 0) from portal.find_credential() c);

-- Events that the sequencer has processed: those up to its highest number, except for gaps that are
-- still open. feed_party_id is the party whose feed gets a coupon event. It is always 0 in Variant
-- A, which has one feed.
create or replace view rules.sequenced_event as
select e.tenant_id, e.event_seq, e.event_id, e.party_id, e.coupon_id, e.recorded_at,
       case t.variant when 'A' then 0 else e.party_id end as feed_party_id, e.event_type
from rules.event e
join core.tenant t on t.tenant_id = e.tenant_id
cross join core.sequencer s
where e.event_seq <= s.high_seq
  and not exists (select from core.event_gap g where g.event_seq = e.event_seq);

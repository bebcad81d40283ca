create or replace view rules.feed_counts_its_events as
select 'feed counts its events' as invariant, f.tenant_id,
       core.name_party(f.tenant_id, f.party_id) as subject
from core.feed f
left join (
  select e.tenant_id, e.feed_party_id, count(*) as events
  from rules.sequenced_event e
  where e.coupon_id is not null
  group by e.tenant_id, e.feed_party_id) e
  on e.tenant_id = f.tenant_id and e.feed_party_id = f.party_id
where coalesce(e.events, 0) <> f.last_position - f.skipped_count;
comment on view rules.feed_counts_its_events is
  'Feeds that have not assigned one position to each of their events.';

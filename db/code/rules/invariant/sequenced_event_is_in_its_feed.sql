-- For feeds that are complete from position 1. feed_counts_its_events also covers pruned feeds.
create or replace view rules.sequenced_event_is_in_its_feed as
select 'sequenced event is in its feed' as law, e.tenant_id,
       rules.format_id('evt', e.event_id) as subject
from rules.sequenced_event e
left join core.feed f on f.tenant_id = e.tenant_id and f.party_id = e.feed_party_id
where e.coupon_id is not null
  and (f.tenant_id is null or (
    select min(x.first_position)
    from core.feed_page x
    where x.tenant_id = f.tenant_id and x.party_id = f.party_id) = 1)
  and not exists (
    select from rules.feed_event x
    where x.event_seq = e.event_seq and x.tenant_id = e.tenant_id and x.party_id = e.feed_party_id);
comment on view rules.sequenced_event_is_in_its_feed is
  'Events that the sequencer has processed but that are in no feed.';

-- This groups by number, because a planner may run an anti join by comparing each event with all
-- pages.
create or replace view rules.sequenced_event_is_in_its_feed as
select 'sequenced event is in its feed' as invariant, d.tenant_id,
       rules.format_id('evt', (array_agg(d.event_id))[1]) as subject
from (
  select e.tenant_id, e.feed_party_id, e.event_seq, e.event_id, false as is_in_feed
  from rules.sequenced_event e
  where e.coupon_id is not null
  union all
  select p.tenant_id, p.party_id, unnest(p.event_seqs), null::uuid, true
  from core.feed_page p) d
group by d.tenant_id, d.feed_party_id, d.event_seq
having not bool_or(d.is_in_feed)
   and ((
     select min(p.first_position)
     from core.feed_page p
     where p.tenant_id = d.tenant_id and p.party_id = d.feed_party_id) = 1
     or not exists (
       select
       from core.feed f
       where f.tenant_id = d.tenant_id and f.party_id = d.feed_party_id));
comment on view rules.sequenced_event_is_in_its_feed is
  'Events that the sequencer has processed but that are in no feed. Only of feeds that are '
  'complete from position 1; feed_counts_its_events also covers pruned feeds.';

create or replace view rules.feed_positions_are_1_to_n as
select 'feed positions are 1 to n' as invariant, f.tenant_id,
       core.name_party(f.tenant_id, f.party_id) as subject
from core.feed f
left join lateral (
  select sum(cardinality(p.event_seqs)) as events, min(p.first_position) as first_position,
         max(p.first_position + cardinality(p.event_seqs) - 1) as last_position
  from core.feed_page p
  where p.tenant_id = f.tenant_id and p.party_id = f.party_id) x on true
where (f.skipped_count = 0 and x.last_position <> f.last_position)
   or x.last_position > f.last_position
   or coalesce(x.last_position - x.first_position + 1, 0) - coalesce(x.events, 0)
        not between 0 and f.skipped_count;
comment on view rules.feed_positions_are_1_to_n is
  'Feeds with a missing position, or one beyond their last position. Pruning removes the lowest '
  'positions. admin.note_restore skips positions and counts them in skipped_count, so a feed '
  'may end with skipped positions.';

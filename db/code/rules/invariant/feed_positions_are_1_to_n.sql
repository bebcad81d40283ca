-- Pruning removes the lowest positions. admin.note_restore skips positions and counts them in
-- skipped_count, so a feed may end with skipped positions.
create or replace view rules.feed_positions_are_1_to_n as
select 'feed positions are 1 to n' as law, f.tenant_id, f.party_id::text as subject
from core.feed f
left join lateral (
  select count(*) as events, min(x.position) as first_position, max(x.position) as last_position
  from rules.feed_event x
  where x.tenant_id = f.tenant_id and x.party_id = f.party_id) x on true
where (f.skipped_count = 0 and x.last_position <> f.last_position)
   or x.last_position > f.last_position
   or coalesce(x.last_position - x.first_position + 1, 0) - x.events
        not between 0 and f.skipped_count;
comment on view rules.feed_positions_are_1_to_n is
  'Feeds with a missing position, or one beyond their last position.';

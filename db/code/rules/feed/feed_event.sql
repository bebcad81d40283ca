-- The position of each event in its feed. first_position is that of its page.
create or replace view rules.feed_event as
select p.tenant_id, p.party_id, p.first_position + x.ordinality - 1 as position, e.event_id,
       x.event_seq, p.sequenced_at, p.first_position
from core.feed_page p
cross join lateral unnest(p.event_seqs) with ordinality x (event_seq, ordinality)
left join rules.event e on e.event_seq = x.event_seq;

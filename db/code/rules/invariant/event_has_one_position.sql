create or replace view rules.event_has_one_position as
select 'event has one position' as invariant, f.tenant_id,
  rules.format_id('evt', f.event_id) as subject
from rules.feed_event f
group by f.tenant_id, f.event_seq, f.event_id
having count(*) > 1;
comment on view rules.event_has_one_position is
  'Events with two positions.';

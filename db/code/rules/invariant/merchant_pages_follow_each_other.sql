create or replace view rules.merchant_pages_follow_each_other as
select 'merchant pages follow each other' as invariant, p.tenant_id,
       p.merchant_id || ' ' || p.first_position as subject
from (
  select m.tenant_id, m.merchant_id, m.first_position, m.recorded_through,
         lag(m.first_position + cardinality(m.event_seqs)) over earlier as next_position,
         lag(m.recorded_through) over earlier as recorded_before
  from core.merchant_page m
  window earlier as (partition by m.tenant_id, m.merchant_id order by m.first_position)) p
cross join core.sequencer s
join core.tenant t on t.tenant_id = p.tenant_id
where p.first_position < p.next_position
   or p.recorded_through < p.recorded_before
   or p.first_position > coalesce(p.next_position, 1) and s.feed_base = 0
      and t.feed_base = 0;
comment on view rules.merchant_pages_follow_each_other is
  'Pages of a merchant that do not begin after the page before. A restore skips positions, and '
  'so does the reset of a sandbox.';

create or replace view rules.feed_keeps_the_order_of_each_coupon as
select 'feed keeps the order of each coupon' as invariant, f.tenant_id,
       rules.format_id('evt', f.event_id) as subject
from (
  select x.tenant_id, x.event_id, x.event_seq,
         lag(x.event_seq) over (
           partition by x.tenant_id, e.coupon_id order by x.position) as seq_before
  from rules.feed_event x
  join rules.event e on e.event_seq = x.event_seq) f
where f.event_seq < f.seq_before;
comment on view rules.feed_keeps_the_order_of_each_coupon is
  'Events that precede an earlier event of the same coupon in their feed.';

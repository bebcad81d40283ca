-- Batches with their coupons by status, now. Reads no unused and no redeemed coupon: redeemed ones
-- are the ledger's, voided ones have a voiding, locked ones a live lock, and the others are unused.
-- Unused ones expire with their batch, apart from those whose own end was patched: they are in
-- core.coupon_extension until both have ended. A question that asks for no count reads none of it.
create or replace view rules.counted_batch as
select n.*, n.unused_count - n.expired_count as issued_count,
       case
         when n.status <> 'ALLOCATED' then 0
         when n.recalled_at is not null then n.locked_count
         else n.unused_count - n.expired_count + n.locked_count
       end as usable_count
from (
  select u.*, f.unused_count,
         case when u.valid_to <= statement_timestamp() then f.unused_count else 0 end
           + u.expired_more as expired_count
  from (
    select b.*, t.external_id as tenant, x.external_id as template, x.currency,
           coalesce(x.discount_minor, x.max_discount_minor) as most_minor,
           coalesce(l.redemption_count, 0) as redemption_count,
           coalesce(l.reversal_count, 0) as reversal_count,
           coalesce(l.net_minor, 0) as net_minor,
           coalesce(case x.after_reversal when 'reissued' then l.redemption_count - l.reversal_count
                    else l.redemption_count end, 0) as redeemed_count,
           coalesce(k.locked_count, 0) as locked_count, coalesce(v.voided_count, 0) as voided_count,
           coalesce(p.expired_more, 0) as expired_more
    from core.batch b
    join core.tenant t on t.tenant_id = b.tenant_id
    join core.template x on x.tenant_id = b.tenant_id and x.template_id = b.template_id
    left join (
      select l.tenant_id, l.batch_id, sum(l.redemption_count) as redemption_count,
             sum(l.reversal_count) as reversal_count,
             sum(l.redemption_minor + l.reversal_minor) as net_minor
      from rules.line_by_batch l
      group by l.tenant_id, l.batch_id) l
      on l.tenant_id = b.tenant_id and l.batch_id = b.batch_id
    left join (
      select c.tenant_id, c.batch_id, count(*) as locked_count
      from core.redemption r
      join core.coupon c
        on c.coupon_id = any (array[r.coupon_id]) and c.tenant_id = any (array[r.tenant_id])
      where r.status = 'LOCKED' and r.lock_expires_at > statement_timestamp()
      group by c.tenant_id, c.batch_id) k
      on k.tenant_id = b.tenant_id and k.batch_id = b.batch_id
    left join (
      select v.tenant_id, v.batch_id, count(*) as voided_count
      from core.voiding v
      group by v.tenant_id, v.batch_id) v
      on v.tenant_id = b.tenant_id and v.batch_id = b.batch_id
    left join (
      select s.tenant_id, s.batch_id, sum(s.is_expired - s.is_of_ended_batch) as expired_more
      from rules.extended_coupon s
      group by s.tenant_id, s.batch_id) p
      on p.tenant_id = b.tenant_id and p.batch_id = b.batch_id) u
  cross join lateral (
    select u.minted_count - u.redeemed_count - u.locked_count - u.voided_count) f (unused_count)) n;

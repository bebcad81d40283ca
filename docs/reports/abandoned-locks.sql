-- In which stores do locks end without a redemption: cancelled, or expired? The last 30 days.
-- A lock is a basket with a coupon, so percent_abandoned is the share of abandoned baskets. Locks
-- that are still live count for neither side. One-step redeems are no locks.
select tenant, merchant, store,
       count(*) as locks,
       count(*) filter (where status in ('REDEEMED', 'REVERSED')) as confirmed,
       count(*) filter (where status = 'CANCELLED') as cancelled,
       count(*) filter (where status = 'LAPSED') as expired,
       count(*) filter (where status = 'LOCKED') as live,
       round(100.0 * count(*) filter (where status in ('CANCELLED', 'LAPSED'))
         / nullif(count(*) filter (where status <> 'LOCKED'), 0), 1) as percent_abandoned
from report.redemption
where redemption_key >= report.make_key(current_date - 30)
  and lock_expires_at is not null
  and tenant in (select tenant from report.tenant where not is_sandbox)
group by 1, 2, 3
order by percent_abandoned desc nulls last, locks desc, tenant, merchant, store;

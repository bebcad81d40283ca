-- The coupons of batches that the company makes or that were released to it, and those that were
-- locked or redeemed at merchants that it acts for. Whose lock or redemption is live, only those
-- see who act for that merchant.
create or replace view portal.coupon as
select c.tenant, c.coupon, c.status, c.stored_status, c.batch, c.number, c.template,
       case when o.is_own then c.live_redemption end as live_redemption,
       case when o.is_own then c.lock_expires_at end as lock_expires_at, c.valid_from, c.valid_to,
       c.created_at, c.tenant_id, c.coupon_key,
       case when o.is_own then c.live_redemption_key end as live_redemption_key
from report.coupon c
cross join lateral (
  select exists (
    select from portal.redemption r where r.redemption_key = c.live_redemption_key) as is_own) o
where c.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*'
       or exists (select from portal.batch b where b.batch = c.batch)
       or exists (select from portal.redemption r where r.coupon_key = c.coupon_key));

-- The coupons of batches that the company makes or that were released to it, and those that were
-- locked or redeemed at merchants that it acts for.
create or replace view portal.coupon as
select c.*
from report.coupon c
where c.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) is null
       or exists (select from portal.batch b where b.batch = c.batch)
       or exists (select from portal.redemption r where r.coupon_key = c.coupon_key));

-- Redemptions and reversals at merchants that the company acts for.
create or replace view portal.merchant_change as
select c.*
from console.merchant_change c
where c.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*'
       or c.merchant = any (array(select m.merchant from portal.merchant m)));

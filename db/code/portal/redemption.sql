-- Locks and redemptions at merchants that the company acts for.
create or replace view portal.redemption as
select r.*
from report.redemption r
where r.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*'
       or r.merchant = any (array(select m.merchant from portal.merchant m)));

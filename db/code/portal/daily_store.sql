-- Of the statements that the company gets, and of merchants that it acts for.
create or replace view portal.daily_store as
select d.*
from report.daily_store d
where d.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*'
       or d.distributor = (select portal.find_party())
       or d.merchant = any (array(select m.merchant from portal.merchant m)));

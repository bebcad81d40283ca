-- Of the days whose statements the company gets.
create or replace view portal.daily_distributor as
select d.*
from report.daily_distributor d
where d.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*' or d.distributor = (select portal.find_party()));
